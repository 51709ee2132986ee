// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/drain"
)

// printPlan prints the plan of a dry run.
func printPlan(out io.Writer, o options, plan drain.Decision, now time.Time, zone *time.Location) error {
	var data []byte
	var err error
	d := NewDocument(plan, o.policy(), now)
	switch o.output {
	case "json":
		data, err = json.MarshalIndent(d, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(d)
	default:
		data = []byte(table(d, plan, words{now: now, zone: zone}, o.explain))
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// table is a plan for people.
func table(d Document, plan drain.Decision, w words, explain bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s, dry run: nothing is changed\n", d.Node)
	if plan.Cordon != nil {
		fmt.Fprintf(&b, "first: %s\n", plan.Cordon)
	}
	for _, g := range plan.Gates {
		fmt.Fprintln(&b, w.hold(g))
	}
	if len(plan.Rows) > 0 {
		fmt.Fprintln(&b)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "NAMESPACE\tPOD\tVERDICT\tREASON\tNEXT\tMESSAGE")
		for _, r := range plan.Rows {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
				r.Namespace, r.Name, r.Action, r.Reason, orNone(w.escalation(r.Next, r.NextAt)), w.message(r))
		}
		_ = t.Flush()
	}
	if len(plan.Volumes) > 0 {
		fmt.Fprintln(&b)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "VOLUME\tATTACHMENT\tVERDICT\tREASON\tMESSAGE")
		for _, v := range plan.Volumes {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", orNone(v.Volume), orNone(v.Attachment), v.Action, v.Reason, v.Message)
		}
		_ = t.Flush()
	}
	fmt.Fprintln(&b)
	if explain {
		for _, block := range w.explainPlan(plan) {
			fmt.Fprintln(&b, block)
		}
	}
	for _, rung := range d.Ladder {
		fmt.Fprintf(&b, "ladder: %s\n", rung)
	}
	if len(d.NotEvaluated) > 0 {
		fmt.Fprintf(&b, "not evaluated: %s\n", strings.Join(d.NotEvaluated, ", "))
	}
	if d.Outcome != "" {
		fmt.Fprintln(&b, d.Outcome)
	}
	return noTrailingSpace(b.String())
}

// noTrailingSpace takes off what a table leaves behind an empty last column.
func noTrailingSpace(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
