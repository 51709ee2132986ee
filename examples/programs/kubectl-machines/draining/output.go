// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
)

// output prints decisions: as JSON or YAML, one document for each, or as a table.
type output struct {
	format string
	out    io.Writer
	words  words
	last   []byte
}

// structured reports whether decisions are printed for programs, instead of the progress.
func (o *output) structured() bool { return o.format == "json" || o.format == "yaml" }

// plan prints the first decision of a drain.
func (o *output) plan(d drain.Decision) error {
	if o.structured() {
		return o.document(d)
	}
	_, err := io.WriteString(o.out, o.table(d))
	return err
}

// document prints a decision that differs from the last one.
func (o *output) document(d drain.Decision) error {
	text, err := cli.Data(o.format, d)
	if err != nil || bytes.Equal(text, o.last) {
		return err
	}
	if o.format == "yaml" && o.last != nil {
		_, _ = io.WriteString(o.out, "---\n")
	}
	o.last = text
	_, err = o.out.Write(text)
	return err
}

// table returns a plan for people.
func (o *output) table(d drain.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s, dry run: nothing is changed\n", d.Node)
	if d.Cordon != nil {
		fmt.Fprintf(&b, "first: %s\n", d.Cordon)
	}
	for _, g := range d.Gates {
		fmt.Fprintln(&b, o.words.hold(g))
	}
	if len(d.Rows) > 0 {
		rows := [][]string{{"NAMESPACE", "POD", "ACTION", "REASON", "NEXT", "MESSAGE"}}
		for _, r := range d.Rows {
			rows = append(rows, []string{
				r.Namespace, r.Name, string(r.Action), string(r.Reason), cmp.Or(o.words.escalation(r.Next, r.NextAt), "-"), o.words.message(r),
			})
		}
		fmt.Fprint(&b, "\n", explain.Table(rows))
	}
	if len(d.Volumes) > 0 {
		rows := [][]string{{"VOLUME", "ATTACHMENT", "ACTION", "REASON", "MESSAGE"}}
		for _, v := range d.Volumes {
			rows = append(rows, []string{cmp.Or(v.Volume, "-"), cmp.Or(v.Attachment, "-"), string(v.Action), string(v.Reason), v.Message})
		}
		fmt.Fprint(&b, "\n", explain.Table(rows))
	}
	fmt.Fprintln(&b)
	for _, rung := range d.Ladder {
		fmt.Fprintf(&b, "ladder: %s\n", rung)
	}
	if len(d.NotEvaluated) > 0 {
		fmt.Fprintln(&b, notEvaluated(d))
	}
	if d.Over() {
		fmt.Fprintln(&b, d.Outcome)
	}
	return b.String()
}

// notEvaluated returns a line about the lists that could not be read.
func notEvaluated(d drain.Decision) string {
	return "not evaluated: " + strings.ReplaceAll(strings.Trim(fmt.Sprint(d.NotEvaluated), "[]"), " ", ", ")
}
