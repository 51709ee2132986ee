// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// result is what was measured of a plan.
type result struct {
	title    string
	planned  int // machines
	machines []moments
	names    map[string]bool // of the machines
	budgeted bool            // the budget is that of its phases
	phases   []phase
	requests []controlplane.Request // of the manager, in all phases
	idle     idleness
	restart  idleness // a manager that starts beside the fleet
	peak     int      // memory of the manager in bytes; zero if not known
	figures  fmt.Stringer
	timeline []string // of the first machine
}

// phase is what was measured of a phase.
type phase struct {
	name         string
	machines     int         // machines that are created, replaced or deleted
	asked        []time.Time // when the requests to the manager were made
	began, ended time.Time
	cpu          time.Duration          // of the manager; zero if not known
	requests     []controlplane.Request // of the manager
	writes       writes                 // of the manager and the kubelets
	// wall is the time from the requests to the last step of a machine. Zero means that it is not
	// known.
	wall time.Duration
	// floor is the time of a loop for the same writes, and played the writes that it made according
	// to the audit log.
	floor  time.Duration
	played writes
}

// overFloor returns how many times as long as the floor the phase takes.
func (p phase) overFloor() float64 { return float64(p.wall) / float64(max(1, p.floor)) }

// cpuEach returns the CPU time of the manager for each machine.
func (p phase) cpuEach() time.Duration { return p.cpu / time.Duration(max(1, p.machines)) }

// idleness is what was measured of the idle manager.
type idleness struct {
	began, ended time.Time
	cpu          time.Duration
	requests     []controlplane.Request // without those for the lease
}

// rate returns the number of requests in a second.
func (r idleness) rate() float64 {
	return float64(len(r.requests)) / max(r.ended.Sub(r.began).Seconds(), 1e-9)
}

// writes returns the number of writes. The reviews of its own rights are none.
func (r idleness) writes() (n int) {
	for _, q := range r.requests {
		if i := column(q); i >= 0 && i < reads && !strings.HasSuffix(q.Resource, "accessreviews") && !strings.HasSuffix(q.Resource, "rulesreviews") {
			n++
		}
	}
	return n
}

// most returns the three most frequent requests as text.
func (r idleness) most() string {
	counts := map[string]int{}
	for _, q := range r.requests {
		counts[write{q.Resource, q.Subresource, q.Verb}.String()]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var text strings.Builder
	for _, name := range names[:min(3, len(names))] {
		fmt.Fprintf(&text, "; %d %s", counts[name], name)
	}
	return text.String()
}

// phase returns the phase with a name; the zero phase if there is none.
func (r result) phase(name string) phase {
	for _, p := range r.phases {
		if p.name == name {
			return p
		}
	}
	return phase{}
}

// times returns how long a step took in every machine.
func (r result) times(from, to func(moments) time.Time) series {
	var s series
	for _, l := range r.machines {
		s.add(from(l), to(l))
	}
	return s
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
	r.printPhases(out)
	r.printProcess(out)
	r.printTimes(out)
	r.printRequests(out)
	r.printBudget(out)
	fmt.Fprintf(out, "no bound broken: %s\n", r.figures)
	if timeline {
		fmt.Fprintf(out, "\n%s\n", strings.Join(r.timeline, "\n"))
	}
}

func (r result) printPhases(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "phase\tmachines\twall s\tfloor s\twall/floor\twrites\trequests/machine\tCPU ms/machine\t")
	for _, p := range r.phases {
		ratio, cpu := "not measured", "not measured"
		if p.wall > 0 && p.floor > 0 {
			ratio = fmt.Sprintf("%.2f", p.overFloor())
		}
		if p.cpu > 0 {
			cpu = fmt.Sprintf("%.1f", float64(p.cpuEach())/1e6)
		}
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%s\t%d\t%.2f\t%s\t\n",
			p.name, p.machines, p.wall.Seconds(), p.floor.Seconds(), ratio, p.played.sum(), float64(len(p.requests))/float64(max(1, p.machines)), cpu)
	}
	_ = table.Flush() // to standard output
}

// cpuOfLife returns the CPU time of the manager for each life; zero if it is not known.
func (r result) cpuOfLife() time.Duration {
	var sum time.Duration
	for _, p := range r.phases {
		if p.cpu <= 0 {
			return 0
		}
		sum += p.cpu
	}
	return sum / time.Duration(max(1, len(r.machines)))
}

// printProcess prints what the idle manager does, and the CPU time and the memory of the manager.
func (r result) printProcess(out io.Writer) {
	if !r.idle.ended.IsZero() {
		took := r.idle.ended.Sub(r.idle.began)
		fmt.Fprintf(out, "\nidle for %.0f s after the rollout: %.2f requests/s beyond leases, %.1f ms CPU for each second%s\n",
			took.Seconds(), r.idle.rate(), 1000*float64(r.idle.cpu)/float64(took), r.idle.most())
	}
	if !r.restart.ended.IsZero() {
		fmt.Fprintf(out, "start of another manager: %d requests beyond leases, %d of them writes%s\n", len(r.restart.requests), r.restart.writes(), r.restart.most())
	}
	cpu, memory := "not measured", "not measured"
	if took := r.cpuOfLife(); took > 0 {
		cpu = fmt.Sprintf("%.1f ms", float64(took)/1e6)
	}
	if r.peak > 0 {
		memory = fmt.Sprintf("%.0f MiB", float64(r.peak)/(1<<20))
	}
	fmt.Fprintf(out, "\nmanager: CPU time of a life: %s; peak memory: %s\n\n", cpu, memory)
}

// steps are the steps of a machine.
var steps = []struct {
	title    string
	from, to func(moments) time.Time
}{
	{"machine to VM", made, vm},
	{"VM to Node", vm, node},
	{"Node to Running", node, running},
	{"machine to Running", made, running},
	{"deletion to that of the VM", deleted, vmDeleted},
	{"deletion to gone", deleted, removed},
}

func (r result) printTimes(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ms\tmedian\tp95\tmax\t")
	for _, row := range steps {
		s := r.times(row.from, row.to)
		if len(s) == 0 {
			fmt.Fprintf(table, "%s\tnot measured\t\t\t\n", row.title)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", row.title, millis(s.median()), millis(s.at(0.95)), millis(s.at(1)))
	}
	_ = table.Flush() // to standard output
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond))
}
