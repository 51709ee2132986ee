// SPDX-License-Identifier: Apache-2.0

// Package reasons has what helps against what a hold waits for.
package reasons

import "github.com/machinist-dev/machinist"

// Helps returns what ends a hold with a reason, as a sentence of the page docs/reasons.md. It is that of the
// first of the packages, such as "machine", that has one for this reason. It returns "" if there is none.
func Helps(r machinist.Reason, packages ...string) string {
	for _, p := range packages {
		if help := helps[p][r]; help != "" {
			return help
		}
	}
	return ""
}
