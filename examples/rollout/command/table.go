// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A column of a table.
type column struct {
	name string
	of   func(Frame) string
	// used says whether the column has anything to say; nil is always.
	used func(Frame) bool
}

var columns = []column{
	{"TIME", func(f Frame) string {
		if f.Before {
			return "before"
		}
		return span(f.After.Duration)
	}, nil},
	{"OLD", func(f Frame) string { return strconv.Itoa(f.wanted(false)) }, nil},
	{"NEW", func(f Frame) string { return strconv.Itoa(f.wanted(true)) }, nil},
	{"AVAILABLE", func(f Frame) string { return inequality(f.Available, ">=", "<", f.Floor) }, nil},
	{"TOTAL", func(f Frame) string { return inequality(f.Total, "<=", ">", f.Cap) }, nil},
	stateColumn("SETTLING", func(m Machines) int { return m.Settling }),
	stateColumn("UPDATING", func(m Machines) int { return m.Updating }),
	stateColumn("JOINING", func(m Machines) int { return m.Joining }),
	stateColumn("FAILED", func(m Machines) int { return m.Failed }),
	stateColumn("LEAVING", func(m Machines) int { return m.Leaving }),
}

// stateColumn is one of machines in a state, left out if there never are any.
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

// wanted is how many machines the new set is to have, or the old ones are.
func (f Frame) wanted(isNew bool) int {
	n := 0
	for _, s := range f.Sets {
		if s.New == isNew {
			n += s.Wanted
		}
	}
	return n
}

// inequality compares two numbers with the sign that is true.
func inequality(a int, kept, broken string, b int) string {
	sign := kept
	if kept == ">=" && a < b || kept == "<=" && a > b {
		sign = broken
	}
	return strconv.Itoa(a) + sign + strconv.Itoa(b)
}

// table is a roll-out for people: a row for every frame, with what was done and why below each
// other in the last column.
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
		lines := f.lines(wide)
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
	return noTrailingSpace(b.String())
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// lines are what happened at a frame: from outside, by the decisions, and what was not done.
func (f Frame) lines(wide bool) []string {
	var out []string
	for _, e := range f.Events {
		out = append(out, "event: "+e)
	}
	if wide {
		out = append(out, shortened(f.Happened, mostMachineLines)...)
	}
	out = append(out, f.Done...)
	if f.Reason != "" && len(f.Holds) == 0 {
		out = append(out, f.Reason)
	}
	if wide {
		var goers []string
		for _, v := range f.Victims {
			goers = append(goers, fmt.Sprintf("goes: %s of %s (%s)", v.Machine, v.Set, v.By))
		}
		out = append(out, shortened(goers, mostMachineLines)...)
	}
	if wide {
		for _, h := range f.Holds {
			out = append(out, "waits for "+h.String())
		}
		return out
	}
	return append(out, shortened(waits(f.Holds), mostWaits)...)
}

// waits are the holds in lines, those of one reason and message in one.
func waits(holds []Hold) []string {
	var out []string
	for i, h := range holds {
		same := func(o Hold) bool { return o.Reason == h.Reason && o.Message == h.Message }
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
		out = append(out, "waits for "+h.String())
	}
	return out
}

const (
	// mostWaits is how many lines about holds a table has that is not wide.
	mostWaits = 4
	// mostMachineLines is how many lines a wide table has of one kind about machines.
	mostMachineLines = 10
)

// sets says of every set that has, or is to have, machines how many these are.
func (f Frame) sets() []string {
	var out []string
	for _, s := range f.Sets {
		if s.Wanted == 0 && s.Machines.All() == 0 {
			continue
		}
		words := []string{fmt.Sprintf("%s wants %d:", s.Name, s.Wanted)}
		for _, st := range states {
			if n := st.of(s.Machines); n > 0 {
				words = append(words, strconv.Itoa(n), st.name)
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// summary is a roll-out in a few lines.
func (d Document) summary() string {
	s := d.Summary
	lines := []string{d.ending()}
	for _, w := range waits(d.Holds) {
		lines = append(lines, "  "+w)
	}
	lines = append(lines,
		fmt.Sprintf("%s created, %d gone", count(s.Created, "machine"), s.Gone),
		fmt.Sprintf("most machines: %s; fewest available: %s", margin(s.MostAboveCap, "the cap"), margin(-s.MostBelowFloor, "the floor")))
	return strings.Join(lines, "\n") + "\n"
}

func margin(n int, of string) string {
	switch {
	case n > 0:
		return fmt.Sprintf("%d above %s", n, of)
	case n < 0:
		return fmt.Sprintf("%d below %s", -n, of)
	default:
		return "at " + of
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// noTrailingSpace takes off what a table leaves behind an empty last column.
func noTrailingSpace(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
