// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"strings"
)

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string {
	var parts []string
	for _, a := range d.Actions {
		parts = append(parts, a.String())
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing")
	}
	parts = []string{fmt.Sprintf("%s (%s)", strings.Join(parts, "; "), d.Reason)}
	for _, h := range d.Holds {
		parts = append(parts, "waits for "+h.String())
	}
	return strings.Join(parts, "; ")
}
