// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The targets: ratios of two figures of one run, or counts.
const (
	// mostRequests is how many requests to the control cluster a life takes at most, reads among
	// them, without Events and Leases. It is that of a machine of the largest fleet, so that the
	// requests for sets and deployments are spread out.
	mostRequests = 9
	// mostIdle is how many requests in a second the manager of an idle fleet makes at most.
	mostIdle = 0.2
	// mostIdleCPU is the share of a CPU that the manager of an idle fleet takes at most.
	mostIdleCPU = 0.002
	// mostToStart is how many requests a manager makes that starts beside an idle fleet. None is a write.
	mostToStart = 20
	// mostMemory is how many bytes of memory each further machine takes at most.
	mostMemory = 35 << 10
	// mostGrowth is by how much a machine of the largest fleet may cost more than one of the
	// smallest.
	mostGrowth = 1.1
	// mostOverFloor is how many times as long as its floor a phase of the largest fleet may take.
	mostOverFloor = 2
	// mostAlone is how many times as long as its floor the deletion of a single machine may take.
	mostAlone = 3
	// many is how many machines a fleet has at least that is compared with a smaller one, and apart
	// is how many times as large it is at least.
	many, apart = 200, 5
)

// verdict is whether the targets are met so far.
type verdict struct {
	out  io.Writer
	goos string // the operating system
	met  bool
}

func (v *verdict) say(ok bool, format string, args ...any) {
	answer := "yes"
	if !ok {
		v.met, answer = false, "NO "
	}
	fmt.Fprintf(v.out, "%s  %s\n", answer, fmt.Sprintf(format, args...))
}

// judge prints whether the targets are met, and says so. One for which something was
// not measured is not.
func judge(out io.Writer, goos string, single result, sizes map[int]result) bool {
	fmt.Fprintln(out, "\n== targets")
	v := &verdict{out: out, goos: goos, met: true}
	if v.complete("single machines", single) {
		p := single.phase(deletion)
		v.say(p.overFloor() <= mostAlone, "the deletion of a single machine takes %.2f times its floor <= %d", p.overFloor(), mostAlone)
	}
	complete := true
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		r := sizes[size]
		if !v.complete(fmt.Sprintf("fleet of %d", size), r) {
			complete = false
			continue
		}
		for _, p := range r.phases {
			over := p.overspent(budgets, r.names)
			v.say(len(over) == 0, "%s of %d machines keeps its budget of requests%s", p.name, size, listed(over))
			v.say(p.conflictShare() <= mostConflicts, "%s of %d machines: %.2f %% of its requests are conflicts <= %.0f %%", p.name, size, 100*p.conflictShare(), 100*mostConflicts)
		}
		v.say(r.idle.rate() <= mostIdle, "an idle fleet of %d takes %.2f requests/s beyond leases <= %.1f", size, r.idle.rate(), mostIdle)
		v.say(len(r.restart.requests) <= mostToStart && r.restart.writes() == 0, "a manager that starts beside %d machines makes %d requests beyond leases <= %d, %d writes <= 0",
			size, len(r.restart.requests), mostToStart, r.restart.writes())
		if goos == "linux" {
			share := float64(r.idle.cpu) / float64(max(1, r.idle.ended.Sub(r.idle.began)))
			v.say(share <= mostIdleCPU, "an idle fleet of %d takes %.2f %% of a CPU <= %.1f %%", size, 100*share, 100*mostIdleCPU)
		}
	}
	if base, large := pick(sizes); large > 0 && complete {
		v.compare(base, large, sizes[base], sizes[large])
	} else if large == 0 {
		fmt.Fprintf(out, "-    the rest takes a fleet of %d or more, and one that is %d times smaller\n", many, apart)
	}
	return v.met
}

// listed returns texts as a list in a sentence.
func listed(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, "; ")
}

// complete reports whether everything except the process was measured, and prints what was not.
// The process can only be measured on Linux, so that it is no failure elsewhere.
func (v *verdict) complete(title string, r result) bool {
	missing := r.missing()
	for _, what := range missing {
		v.say(false, "%s: not measured: %s", title, what)
	}
	if n := r.unread(); n > 0 && v.goos == "linux" {
		v.say(false, "%s: not measured: CPU time of %d of %d phases", title, n, len(r.phases))
	}
	return len(missing) == 0
}

// compare judges the largest fleet by itself and by the smallest.
func (v *verdict) compare(base, large int, a, b result) {
	requests := b.each(withoutEvents, in("control"))
	v.say(requests <= mostRequests, "%.2f requests to the control cluster for each life of %d machines without Events <= %d (%.2f more to the target cluster)",
		requests, large, mostRequests, b.each(withoutEvents, in("target")))
	for _, p := range b.phases {
		v.say(p.overFloor() <= mostOverFloor, "%s of %d machines takes %.2f times its floor <= %d", p.name, large, p.overFloor(), mostOverFloor)
	}
	grows := func(what string, a, b float64) {
		v.say(b <= mostGrowth*a, "%s for each of %d machines is %.2f times that of %d (%.1f and %.1f) <= %.1f", what, large, b/max(a, 1e-9), base, b, a, mostGrowth)
	}
	switch {
	case a.unread()+b.unread() == 0:
		for _, p := range b.phases {
			grows("CPU time to "+p.name+" in ms", float64(a.phase(p.name).cpuEach())/1e6, float64(p.cpuEach())/1e6)
		}
	case v.goos != "linux":
		fmt.Fprintf(v.out, "-    CPU time was not measured: %s does not tell it here\n", v.goos)
	}
	grows("number of requests of a life", a.each(), b.each())
	if a.peak > 0 && b.peak > 0 {
		each := float64(b.peak-a.peak) / float64(large-base)
		v.say(each <= mostMemory, "the memory of each further machine is %.1f KiB <= %d", each/1024, mostMemory>>10)
	}
}

// pick returns the smallest size and the largest, if they are far enough apart to be compared.
func pick(sizes map[int]result) (base, large int) {
	all := slices.Sorted(maps.Keys(sizes))
	if len(all) == 0 {
		return 0, 0
	}
	base, large = all[0], all[len(all)-1]
	if large < many || large < apart*base {
		return 0, 0
	}
	return base, large
}
