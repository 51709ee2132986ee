// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
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

// changed prints a decision that differs from the last one. An error of the writer does not end the
// drain.
func (o *output) changed(d drain.Decision) { _ = o.document(d) }

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
		fmt.Fprintln(&b)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "NAMESPACE\tPOD\tACTION\tREASON\tNEXT\tMESSAGE")
		for _, r := range d.Rows {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
				r.Namespace, r.Name, r.Action, r.Reason, orNone(o.words.escalation(r.Next, r.NextAt)), o.words.message(r))
		}
		_ = t.Flush()
	}
	if len(d.Volumes) > 0 {
		fmt.Fprintln(&b)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "VOLUME\tATTACHMENT\tACTION\tREASON\tMESSAGE")
		for _, v := range d.Volumes {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", orNone(v.Volume), orNone(v.Attachment), v.Action, v.Reason, v.Message)
		}
		_ = t.Flush()
	}
	fmt.Fprintln(&b)
	footer(&b, d)
	return cli.Trim(b.String())
}

func footer(b *strings.Builder, d drain.Decision) {
	for _, rung := range d.Ladder {
		fmt.Fprintf(b, "ladder: %s\n", rung)
	}
	if len(d.NotEvaluated) > 0 {
		fmt.Fprintf(b, "not evaluated: %s\n", joined(d.NotEvaluated))
	}
	if d.Over() {
		fmt.Fprintln(b, d.Outcome)
	}
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func joined(sources []drain.Source) string {
	var names []string
	for _, s := range sources {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
