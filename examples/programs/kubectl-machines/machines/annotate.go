// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// NewRetry returns the command that ends a pause before the next attempt.
func NewRetry(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry [KIND/]NAME...", Short: "Try again now what has failed, instead of after a pause",
		Long: `Try again now what has failed, such as the creation of a VM, instead of after a pause.

It sets the annotation ` + v1alpha1.RetryNowAnnotation + ` on a machine, machineset or
machinedeployment. The controllers remove it when they acted on it.`,
		Example: "  kubectl machines retry workers-5d94c-abcde\n  kubectl machines retry machinedeployment/workers",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: e.Complete(explain.Machines, explain.Sets, explain.Deployments),
	}
	printer := cli.NewPrinter(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.Connect()
		for _, arg := range args {
			if err == nil {
				at := e.Clock.Now().UTC().Format(time.RFC3339)
				err = annotate(cmd.Context(), e, c, printer, arg, "will be tried again", func(a map[string]string) { a[v1alpha1.RetryNowAnnotation] = at },
					explain.Machines, explain.Sets, explain.Deployments)
			}
		}
		return err
	}
	return cmd
}

// remove is the value of preserve that removes the annotation.
const remove = "remove"

// NewPreserve returns the command that keeps a failed machine from being replaced.
func NewPreserve(e *cli.Env) *cobra.Command {
	values := []string{
		v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed, v1alpha1.PreserveMachineAnnotationValueFalse, remove,
	}
	cmd := &cobra.Command{
		Use: "preserve NAME " + strings.Join(values, "|"), Short: "Keep a machine and its VM, to look at what has failed",
		Long: `Keep a machine and its VM, to look at what has failed.

  now           from now on
  when-failed   as soon as it has failed
  false         no longer, and not by its set either
  remove        no longer; its set may preserve it

It sets the annotation ` + v1alpha1.PreserveMachineAnnotationKey + ` of the machine. The annotation
of its Node counts before that.`,
		Example: "  kubectl machines preserve workers-5d94c-abcde when-failed",
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return values, cobra.ShellCompDirectiveNoFileComp
			}
			return e.Complete(explain.Machines)(cmd, args, word)
		},
	}
	printer := cli.NewPrinter(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		value := args[1]
		if !slices.Contains(values, value) {
			return cli.Refuse("%q is not a value, want %s", value, strings.Join(values, ", "))
		}
		c, err := e.Connect()
		if err != nil {
			return err
		}
		done, edit := "preserved: "+value, func(a map[string]string) { a[v1alpha1.PreserveMachineAnnotationKey] = value }
		switch value {
		case v1alpha1.PreserveMachineAnnotationValueFalse:
			done = "not preserved"
		case remove:
			done, edit = "not preserved by its annotation", func(a map[string]string) { delete(a, v1alpha1.PreserveMachineAnnotationKey) }
		}
		return annotate(cmd.Context(), e, c, printer, args[0], done, edit, explain.Machines)
	}
	return cmd
}

// annotate edits the annotations of an object and prints it.
func annotate(ctx context.Context, e *cli.Env, c cli.Clients, p *cli.Printer, arg, done string, edit func(map[string]string), kinds ...explain.Kind) error {
	kind, name, err := cli.Named(arg, kinds...)
	if err != nil {
		return err
	}
	o, err := c.Get(ctx, kind, name)
	if err != nil {
		return err
	}
	next := o.DeepCopyObject().(cli.Object) //nolint:forcetypeassert // of the same type
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	edit(annotations)
	next.SetAnnotations(annotations)
	written, err := c.Patch(ctx, o, next)
	if err != nil {
		return err
	}
	if before := o.GetAnnotations()[v1alpha1.LastAppliedNodePreserveValueAnnotationKey]; before != "" && len(kinds) == 1 {
		_, _ = fmt.Fprintf(e.ErrOut, "warning: its Node has the annotation %s=%s, which counts before that of the machine\n", v1alpha1.PreserveMachineAnnotationKey, before)
	}
	return p.Print(e.Out, written, done)
}
