// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// column is a column of a table.
type column struct {
	name string
	of   func(Frame) string
	// used reports whether the column is needed for a frame. Nil means always.
	used func(Frame) bool
}

var columns = []column{
	{"TIME", func(f Frame) string {
		if f.Before {
			return "before"
		}
		return span(f.After.Duration)
	}, nil},
	{"OLD", func(f Frame) string { return strconv.Itoa(f.replicas(false)) }, nil},
	{"NEW", func(f Frame) string { return strconv.Itoa(f.replicas(true)) }, nil},
	{"AVAILABLE", func(f Frame) string { return inequality(f.Available, ">=", "<", f.Minimum) }, nil},
	{"TOTAL", func(f Frame) string { return inequality(f.Total, "<=", ">", f.Maximum) }, nil},
	stateColumn("READY", func(m Machines) int { return m.Ready }),
	stateColumn("UPDATING", func(m Machines) int { return m.Updating }),
	stateColumn("PENDING", func(m Machines) int { return m.Pending }),
	stateColumn("FAILED", func(m Machines) int { return m.Failed }),
	stateColumn("TERMINATING", func(m Machines) int { return m.Terminating }),
}

// stateColumn returns the column of a state. It is left out if no machine is ever in that state.
func stateColumn(name string, of func(Machines) int) column {
	return column{
		name: name,
		of: func(f Frame) string {
			n := of(machinesOf(f))
			if n == 0 {
				return "."
			}
			return strconv.Itoa(n)
		},
		used: func(f Frame) bool { return of(machinesOf(f)) > 0 },
	}
}

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
// each other in the last column.
func table(d Document, wide bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", d.Deployment, d.Change)
	used := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return c.used != nil && !slices.ContainsFunc(d.Frames, c.used)
	})
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range used {
		_, _ = fmt.Fprint(t, c.name, "\t")
	}
	if wide {
		_, _ = fmt.Fprint(t, "SETS\t")
	}
	_, _ = fmt.Fprintln(t, "DECISION")
	for _, f := range d.Frames {
		lines := f.lines(d.Start, wide)
		sets := []string{}
		if wide {
			sets = f.sets()
		}
		for i := range max(1, len(lines), len(sets)) {
			for _, c := range used {
				if i == 0 {
					_, _ = fmt.Fprint(t, c.of(f))
				}
				_, _ = fmt.Fprint(t, "\t")
			}
			if wide {
				_, _ = fmt.Fprint(t, line(sets, i), "\t")
			}
			_, _ = fmt.Fprintln(t, line(lines, i))
		}
	}
	_ = t.Flush()
	fmt.Fprintf(&b, "\n%s", d.summary())
	return cli.Trim(b.String())
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// lines returns the events, the actions and the holds of a frame.
func (f Frame) lines(start time.Time, wide bool) []string {
	var out []string
	for _, e := range f.Events {
		out = append(out, "event: "+e)
	}
	if wide {
		out = append(out, shortened(f.MachineEvents, maxMachineLines)...)
	}
	out = append(out, actionLines(f.Decision.Actions)...)
	if reason := f.Decision.Reason; reason == deployment.ReasonStuck || reason != "" && len(f.Decision.Holds) == 0 {
		out = append(out, string(reason))
	}
	if f.Total > f.Maximum && f.Replacing > 0 {
		out = append(out, machines(min(f.Replacing, f.Total-f.Maximum))+" above the maximum: deleted because it failed, while its replacement exists")
	}
	if !wide {
		return append(out, shortened(holdLines(f.Decision.Holds, start), maxHoldLines)...)
	}
	var deletions []string
	for _, del := range f.Deletions {
		deletions = append(deletions, fmt.Sprintf("set %s deletes machine %s, chosen by %s", del.Set, del.Machine, del.By))
	}
	out = append(out, shortened(deletions, maxMachineLines)...)
	for _, h := range f.Decision.Holds {
		out = append(out, holdLine(h, start))
	}
	return out
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

// holdLines returns the texts of holds. Those with the same reason and message are one line.
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
		out = append(out, holdLine(h, start))
	}
	return out
}

// holdLine returns the text of a hold, with its end as the time since the change.
func holdLine(h machinist.Hold, start time.Time) string {
	s := "waits for " + h.String()
	if !h.Until.IsZero() {
		s += " (until " + span(h.Until.Sub(start)) + ")"
	}
	return s
}

const (
	// maxHoldLines is the maximum number of lines about holds in a row of a table that is not wide.
	maxHoldLines = 4
	// maxMachineLines is the maximum number of lines of one kind about machines in a row of a wide
	// table.
	maxMachineLines = 10
)

// sets returns a line for each set that has or wants machines.
func (f Frame) sets() []string {
	var out []string
	for _, s := range f.Sets {
		if s.Replicas == 0 && s.Machines.All() == 0 {
			continue
		}
		words := []string{fmt.Sprintf("%s wants %d:", s.Name, s.Replicas)}
		for _, st := range states {
			if n := st.of(s.Machines); n > 0 {
				words = append(words, strconv.Itoa(n), st.name)
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

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
