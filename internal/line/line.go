// SPDX-License-Identifier: Apache-2.0

// Package line writes decisions as one line of text. All packages that decide use it, so
// that their decisions read alike in logs, in tests and in the output of programs.
package line

import (
	"fmt"
	"strings"

	"github.com/machinist-dev/machinist"
)

// Shown is how many actions and how many holds a line has at most.
const Shown = 30

// Decision returns the actions of a decision, its reason and message, and its holds:
//
//	delete VM web-1; delete VM web-2 (Orphaned); waits for web-3: TooYoung: 2m old
//
// A decision without actions begins with "nothing". The parentheses are left out if both
// reason and message are empty. After [Shown] actions or holds the line counts the rest.
func Decision[A fmt.Stringer](actions []A, reason machinist.Reason, message string, holds []machinist.Hold) string {
	parts := list(nil, actions, "", "actions")
	if len(parts) == 0 {
		parts = []string{"nothing"}
	}
	switch {
	case reason != "" && message != "":
		parts[len(parts)-1] += fmt.Sprintf(" (%s: %s)", reason, message)
	case reason != "" || message != "":
		parts[len(parts)-1] += fmt.Sprintf(" (%s%s)", reason, message)
	}
	return strings.Join(list(parts, holds, "waits for ", "holds"), "; ")
}

// list appends the text of at most Shown elements to parts, and the number of the others.
func list[T fmt.Stringer](parts []string, of []T, prefix, name string) []string {
	for i, e := range of {
		if i == Shown {
			return append(parts, fmt.Sprintf("%d more %s", len(of)-Shown, name))
		}
		parts = append(parts, prefix+e.String())
	}
	return parts
}
