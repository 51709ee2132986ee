// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replicas returns the replicas of the new set, or the sum of those of the old sets.
func (f Frame) replicas(isNew bool) int {
	n := 0
	for _, s := range f.Sets {
		if s.New == isNew {
			n += s.Replicas
		}
	}
	return n
}

// inequality returns two numbers with the sign that is true.
func inequality(a int, kept, broken string, b int) string {
	sign := kept
	if kept == ">=" && a < b || kept == "<=" && a > b {
		sign = broken
	}
	return strconv.Itoa(a) + sign + strconv.Itoa(b)
}

// table returns a rollout as a table with a row for each frame. Events, actions and holds are below
// each other in the last column. States in which no machine ever is have no column.
func table(d Document) string {
	header, shown := []string{"TIME", "OLD", "NEW", "AVAILABLE", "TOTAL"}, []string{}
	for _, s := range states[1:] {
		if slices.ContainsFunc(d.Frames, func(f Frame) bool { return machinesOf(f)[s.name] > 0 }) {
			header, shown = append(header, strings.ToUpper(s.name)), append(shown, s.name)
		}
	}
	rows := [][]string{append(header, "DECISION")}
	for _, f := range d.Frames {
		at := span(f.After.Duration)
		if f.Before {
			at = "before"
		}
		row := []string{
			at, strconv.Itoa(f.replicas(false)), strconv.Itoa(f.replicas(true)),
			inequality(f.Available, ">=", "<", f.Minimum), inequality(f.Total, "<=", ">", f.Maximum),
		}
		all := machinesOf(f)
		for _, state := range shown {
			cell := "."
			if n := all[state]; n > 0 {
				cell = strconv.Itoa(n)
			}
			row = append(row, cell)
		}
		rows = append(rows, append(row, strings.Join(f.lines(d.Start), "\n")))
	}
	return fmt.Sprintf("%s: %s\n\n%s\n%s", d.Deployment, d.Change, explain.Table(rows), d.summary())
}

// lines returns the events, the actions and the holds of a frame.
func (f Frame) lines(start time.Time) []string {
	var out []string
	for _, e := range f.Events {
		out = append(out, "event: "+e)
	}
	out = append(out, actionLines(f.Decision.Actions)...)
	if reason := f.Decision.Reason; reason == deployment.ReasonStuck || reason != "" && len(f.Decision.Holds) == 0 {
		out = append(out, string(reason))
	}
	if f.Total > f.Maximum && f.Replacing > 0 {
		out = append(out, machines(min(f.Replacing, f.Total-f.Maximum))+" above the maximum: deleted because it failed, while its replacement exists")
	}
	return append(out, shortened(holdLines(f.Decision.Holds, start), maxHoldLines)...)
}

// actionLines returns the texts of actions. Equal changes of several Nodes or machines are one line.
func actionLines(actions []machinist.Action) []string {
	var lines []string
	first, many := map[string]int{}, map[string]int{}
	for _, a := range actions {
		update, _ := a.(machinist.Update)
		group := "update %d nodes: "
		switch update.Object.(type) {
		case *corev1.Node:
		case *v1alpha1.Machine:
			group = "update %d machines: "
		default:
			lines = append(lines, a.String())
			continue
		}
		changes := strings.Join(update.Changes, "; ")
		key := group + changes
		if many[key]++; many[key] == 1 {
			first[key] = len(lines)
			lines = append(lines, a.String())
		} else {
			lines[first[key]] = fmt.Sprintf(group, many[key]) + changes
		}
	}
	return lines
}

// holdLines returns the texts of holds, with their ends as times since the change. Those with the same reason
// and message are one line.
func holdLines(holds []machinist.Hold, start time.Time) []string {
	var out []string
	for i, h := range holds {
		same := func(o machinist.Hold) bool { return o.Reason == h.Reason && o.Message == h.Message }
		if slices.ContainsFunc(holds[:i], same) {
			continue
		}
		more := 0
		for _, o := range holds[i+1:] {
			if same(o) {
				more++
			}
		}
		if more > 0 {
			h.Subject += fmt.Sprintf(" and %d more", more)
		}
		text := "waits for " + h.String()
		if !h.Until.IsZero() {
			text += " (until " + span(h.Until.Sub(start)) + ")"
		}
		out = append(out, text)
	}
	return out
}

// maxHoldLines is the maximum number of lines about holds in a row of a table.
const maxHoldLines = 4

// summary returns a rollout in a few lines.
func (d Document) summary() string {
	s := d.Summary
	lines := []string{d.ending()}
	if d.Outcome != OutcomeComplete {
		for _, w := range holdLines(d.Decision.Holds, d.Start) {
			lines = append(lines, "  "+w)
		}
	}
	lines = append(lines,
		fmt.Sprintf("%s created, %d deleted", machines(s.Created), s.Gone),
		d.bounds())
	return strings.Join(lines, "\n") + "\n"
}

// margin returns how far a bound was exceeded, or how close the rollout came to it.
func margin(beyond int) string {
	switch {
	case beyond > 0:
		return fmt.Sprintf("violated by %d", beyond)
	case beyond < 0:
		return fmt.Sprintf("kept, with %d to spare", -beyond)
	default:
		return "reached"
	}
}

// machines returns n with its unit.
func machines(n int) string { return cli.Plural(n, "machine") }
