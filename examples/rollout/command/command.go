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
	// Done: the roll-out is complete.
	Done = 0
	// Failed: it stopped before, was not over in time, or could not be shown.
	Failed = 1
	// Refused: the command line or a file makes no sense. Nothing was played.
	Refused = 2
)

// Command is the rollout command. The zero value reads nothing and writes nothing; it can be run
// several times, also at once if its reader and writers allow that.
type Command struct {
	// In is what a file named "-" is. Nil is empty.
	In io.Reader
	// Out is told of the roll-out, ErrOut of what went wrong. Nil is nowhere.
	Out, ErrOut io.Writer
}

// Run runs the command until the roll-out is over or the context ends, and returns the exit
// status. The arguments are those after the name of the program.
func (c Command) Run(ctx context.Context, args []string) int {
	c = c.completed()
	o, err := parseFlags(args, c.Out)
	if errors.Is(err, pflag.ErrHelp) {
		return Done
	}
	var s scene
	if err == nil {
		s, err = c.prepare(o)
	}
	if err != nil {
		return c.fail(err, Refused)
	}
	d, err := s.play(ctx)
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

func (c Command) completed() Command {
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
