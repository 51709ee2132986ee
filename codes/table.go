// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table returns one line for each code of [All]: its number, its name, its
// category and what that asks of the caller. The layout is for people and may
// change.
func Table() string {
	return align(func(w io.Writer) {
		for _, c := range All() {
			category := c.Category()
			fmt.Fprintf(w, "%2d\t%s\t%s\t%s\n", uint32(c), c, category, categories[category].advice)
		}
	})
}

// align lets write produce cells that end in tabs, and returns them in columns
// without trailing spaces.
func align(write func(io.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	write(w)
	_ = w.Flush() // a strings.Builder takes everything
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
