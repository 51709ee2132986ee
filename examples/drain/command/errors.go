// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/machinist-dev/machinist/drain"
)

// refusedError says that a drain was not begun.
type refusedError struct {
	node  string
	lines []string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("node %s is not drained, and nothing was changed:%s", e.node, list(e.lines))
}

// refuse names everything that keeps a plan from its end.
func refuse(plan drain.Decision, w words) error {
	e := &refusedError{node: plan.Node}
	for _, r := range plan.Obstacles() {
		line := fmt.Sprintf("%s/%s: %s", r.Namespace, r.Name, w.why(r))
		if flag := remedy(r.Reason); flag != "" {
			line += "; " + flag
		}
		e.lines = append(e.lines, line)
	}
	for _, g := range plan.Gates {
		e.lines = append(e.lines, w.hold(g))
	}
	if len(e.lines) == 0 {
		e.lines = []string{reasonOf(plan.Reason, plan.Message)}
	}
	return e
}

// failedError says that a drain is not done.
type failedError struct {
	node  string
	how   string
	lines []string
	err   error
}

func (e *failedError) Error() string {
	s := fmt.Sprintf("node %s: %s", e.node, e.how)
	if len(e.lines) > 0 {
		s += "; it waits for" + list(e.lines)
	}
	return s
}

func (e *failedError) Unwrap() error { return e.err }

// list is one thing on the same line, and several on lines of their own.
func list(lines []string) string {
	if len(lines) == 1 {
		return " " + lines[0]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
