// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The exit status of a command.
const (
	// Done means that the command has done what it was asked to do.
	Done = 0
	// Failed means that it has not. Changes stay, unless the message says that they were undone.
	Failed = 1
	// Refused means that nothing was changed: the command line is invalid, an object does not exist or
	// does not allow the request.
	Refused = 2
)

// refusedError is the error of a command that has changed nothing.
type refusedError struct{ error }

// Unwrap returns the cause.
func (e refusedError) Unwrap() error { return e.error }

// Refuse returns an error whose exit status is [Refused].
func Refuse(format string, args ...any) error { return refusedError{fmt.Errorf(format, args...)} }

// Run runs a command with arguments, prints its errors, and returns the exit status. The arguments do not
// include the name of the program.
func (e *Env) Run(ctx context.Context, command *cobra.Command, args []string) int {
	begun := false
	command.SilenceErrors, command.SilenceUsage = true, true
	command.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	command.SetIn(e.In)
	command.SetOut(e.Out)
	command.SetErr(e.ErrOut)
	command.SetArgs(append([]string{}, args...)) // nil would be those of the process
	ran, err := command.ExecuteContextC(ctx)
	if err == nil {
		return Done
	}
	if !begun {
		err = Refuse("%w; see %s --help", err, ran.CommandPath())
	}
	status := Failed
	for _, err := range each(err) {
		if _, refused := errors.AsType[refusedError](err); refused {
			status = Refused
		}
		_, _ = fmt.Fprintf(e.ErrOut, "error: %v\n", explained(err))
	}
	return status
}

// each returns the errors that were joined.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") { //nolint:errorlint // not one that is wrapped
		return joined.Unwrap()
	}
	return []error{err}
}

// explained adds to an error of an API server what helps.
func explained(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		switch details := status.Status().Details; {
		case apierrors.IsNotFound(err) && (details == nil || details.Name == ""):
			return fmt.Errorf("%w: this cluster has no such objects, --kubeconfig or --context names another one", err)
		case apierrors.IsConflict(err):
			return fmt.Errorf("%w: nothing was changed, repeat the command", err)
		}
	}
	return err
}

// OneLine returns the text of an error in one line.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
