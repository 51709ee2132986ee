// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"fmt"
	"strings"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
)

// refused returns the error of a drain that was not begun, with everything that keeps it from ending.
func refused(subject string, lines ...string) error {
	return cli.Refuse("%s is not drained, and nothing was changed:%s", subject, list(lines))
}

// obstacles returns a line for everything that keeps a drain from ending.
func (w words) obstacles(d drain.Decision) []string {
	var lines []string
	for _, r := range d.Obstacles() {
		line := fmt.Sprintf("%s/%s: %s", r.Namespace, r.Name, w.why(r))
		if flag := remedies[r.Reason]; flag != "" {
			line += "; " + flag
		}
		lines = append(lines, line)
	}
	for _, g := range d.Gates {
		lines = append(lines, w.hold(g))
	}
	if len(lines) == 0 {
		lines = []string{reasonOf(d.Reason, d.Message)}
	}
	return lines
}

// list returns one line as it is, and several on lines of their own.
func list(lines []string) string {
	if len(lines) == 1 {
		return " " + lines[0]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
