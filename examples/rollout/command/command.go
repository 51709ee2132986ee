// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// The exit status of a [Command].
const (
	// Done means that the rollout is complete.
	Done = 0
	// Failed means that the rollout stopped before, was not over in time, or could not be printed.
	Failed = 1
	// Refused means that the command line or a file is invalid. Nothing was simulated.
	Refused = 2
)

// Command is the rollout command. The zero value reads and writes nothing. It can be run several
// times, and concurrently if its reader and writers allow that.
type Command struct {
	// In is the content of the file "-". Nil is empty.
	In io.Reader
	// Out receives the rollout, ErrOut the errors. Nil discards them.
	Out, ErrOut io.Writer
}

// Run simulates the rollout until it is over or the context ends, prints it, and returns the exit
// status. The arguments do not include the name of the program.
func (c Command) Run(ctx context.Context, args []string) int {
	c = c.withDefaults()
	o, err := parseFlags(args, c.Out)
	if errors.Is(err, pflag.ErrHelp) {
		return Done
	}
	var s scenario
	if err == nil {
		s, err = c.prepare(o)
	}
	if err != nil {
		return c.fail(err, Refused)
	}
	d, err := s.simulate(ctx)
	if err != nil {
		if _, refused := errors.AsType[*notUpError](err); refused {
			return c.fail(err, Refused)
		}
		return c.fail(err, Failed)
	}
	if err := d.print(c.Out, o.output); err != nil {
		return c.fail(err, Failed)
	}
	if d.Outcome != OutcomeComplete {
		return c.fail(errors.New(d.ending()), Failed)
	}
	return Done
}

func (c Command) fail(err error, status int) int {
	_, _ = fmt.Fprintf(c.ErrOut, "rollout: %v\n", err)
	return status
}

func (c Command) withDefaults() Command {
	if c.In == nil {
		c.In = strings.NewReader("")
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.ErrOut == nil {
		c.ErrOut = io.Discard
	}
	return c
}
