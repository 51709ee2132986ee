// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"io"
	"time"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
)

// Help is the help of the command drain.
const Help = help

// NewTerminal returns the observer that prints the progress of a drain on a terminal.
func NewTerminal(out io.Writer, pods int, now time.Time) runner.Observer {
	e := cli.New(nil, out, io.Discard)
	e.Zone = time.UTC
	p := command{Env: e}.newProgress(drain.Decision{Rows: make([]drain.Row, pods)})
	p.screen, p.now = &explain.Screen{Out: out}, func() time.Time { return now }
	return p
}
