// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"time"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

// NewTerminal returns the observer that prints the progress of a drain on a terminal.
func NewTerminal(out io.Writer, pods int, now time.Time) runner.Observer {
	c := Command{Out: out, Zone: time.UTC}.completed()
	p := newProgress(c, options{}, drain.Decision{Rows: make([]drain.Row, pods)})
	p.live, p.now = true, func() time.Time { return now }
	return p
}
