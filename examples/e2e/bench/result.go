// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what was measured of a plan.
type result struct {
	title  string
	rounds []round
}

// machines returns how many machines there were.
func (r result) machines() int {
	n := 0
	for _, one := range r.rounds {
		n += len(one.machines)
	}
	return n
}

// times returns how long a step took in every machine.
func (r result) times(from, to func(moments) time.Time) series {
	var s series
	for _, one := range r.rounds {
		for _, l := range one.machines {
			s.add(from(l), to(l))
		}
	}
	return s
}

// median returns the median of a number of each round.
func (r result) median(of func(round) float64) float64 {
	var all []float64
	for _, one := range r.rounds {
		all = append(all, of(one))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// cpu returns the CPU time for each machine; zero if it was not measured.
func (r result) cpu() time.Duration {
	return time.Duration(r.median(func(one round) float64 { return float64(one.cpu) / float64(max(1, len(one.machines))) }))
}

// made returns when the machine was created; the functions below return its other moments.
func made(l moments) time.Time      { return l.made }
func vm(l moments) time.Time        { return l.vm }
func node(l moments) time.Time      { return l.node }
func running(l moments) time.Time   { return l.running }
func deleted(l moments) time.Time   { return l.deleted }
func vmDeleted(l moments) time.Time { return l.vmDeleted }
func removed(l moments) time.Time   { return l.removed }

// print prints the tables, and the timeline of a machine if that is wanted.
func (r result) print(out io.Writer, timeline bool) {
	fmt.Fprintf(out, "\n== %s\n\n", r.title)
	r.printTimes(out)
	r.printRequests(out)
	r.printProcess(out)
	last := r.rounds[len(r.rounds)-1]
	fmt.Fprintf(out, "no bound broken: %s\n", last.figures)
	if timeline {
		fmt.Fprintf(out, "\n%s\n", strings.Join(last.timeline, "\n"))
	}
}

// steps are the steps of a machine.
var steps = []struct {
	title    string
	from, to func(moments) time.Time
	whole    func(round) time.Duration // nil if there is none
}{
	{"machine to VM", made, vm, nil},
	{"VM to Node", vm, node, nil},
	{"Node to Running", node, running, nil},
	{"machine to Running", made, running, func(one round) time.Duration { return one.up }},
	{"deletion to that of the VM", deleted, vmDeleted, nil},
	{"deletion to gone", deleted, removed, func(one round) time.Duration { return one.down }},
}

// printProcess prints what the process of the manager took.
func (r result) printProcess(out io.Writer) {
	cpu, memory := "CPU not measured", "memory not measured"
	if took := r.cpu(); took > 0 {
		idle := r.median(func(one round) float64 { return one.idle })
		cpu = fmt.Sprintf("CPU %.1f ms for each machine, and %.1f ms for each second of idleness", float64(took)/float64(time.Millisecond), 1000*idle)
	}
	if peak := r.median(func(one round) float64 { return float64(one.peak) }); peak > 0 {
		memory = fmt.Sprintf("%.0f MiB of memory at most", peak/(1<<20))
	}
	fmt.Fprintf(out, "%s; %s\n", cpu, memory)
}

func (r result) printTimes(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ms\tmedian\tp95\tmax\twhole\t")
	for _, row := range steps {
		s, whole := r.times(row.from, row.to), ""
		if row.whole != nil {
			whole = millis(time.Duration(r.median(func(one round) float64 { return float64(row.whole(one)) })))
		}
		if len(s) == 0 {
			fmt.Fprintf(table, "%s\tnot measured\t\t\t\t\n", row.title)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", row.title, millis(s.median()), millis(s.at(0.95)), millis(s.at(1)), whole)
	}
	_ = table.Flush() // to standard output
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond))
}
