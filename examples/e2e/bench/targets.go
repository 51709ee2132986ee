// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// The targets.
const (
	// slowest is how long the deletion of an empty machine takes at most.
	slowest = time.Second
	// mostWrites is how many writes to the control cluster a machine takes at most,
	// among many, so that what sets and deployments cost is spread out.
	mostWrites = 12
	// mostGrowth is by how much a machine among many may cost more than one among a
	// few.
	mostGrowth = 1.3
	// few and many are how many these are at least.
	few, many = 20, 200
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
	complete := v.complete("single machines", single)
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		v.complete(fmt.Sprintf("deployments of %d", size), sizes[size])
	}
	if complete {
		alone := series{}
		for _, one := range single.rounds {
			alone = append(alone, one.down)
		}
		took := max(alone.at(1), single.times(deleted, removed).at(1))
		v.say(took < slowest, "an empty machine is gone %s ms after the request < %s ms", millis(took), millis(slowest))
	}
	if base, large := pick(sizes); large > 0 {
		v.compare(base, large, sizes[base], sizes[large])
	} else {
		fmt.Fprintf(out, "-    the rest takes a deployment of %d or more and one of %d or more\n", few, many)
	}
	return v.met
}

// complete reports whether everything except the process was measured, and prints what was not.
// The process can only be measured on Linux, so that it is no failure elsewhere.
func (v *verdict) complete(title string, r result) bool {
	missing := r.missing()
	for _, what := range missing {
		v.say(false, "%s: not measured: %s", title, what)
	}
	if n := r.unread(); n > 0 && v.goos == "linux" {
		v.say(false, "%s: not measured: CPU time in %d of %d rounds", title, n, len(r.rounds))
	}
	return len(missing) == 0
}

// compare judges machines among many by themselves and by those among a few.
func (v *verdict) compare(base, large int, a, b result) {
	if len(a.missing())+len(b.missing()) > 0 {
		return // it was said
	}
	writes := b.writes("control")
	v.say(writes <= mostWrites, "%.2f writes to the control cluster for each of %d machines <= %d (%.2f without the Events)",
		writes, large, mostWrites, writes-b.writes("control", "events"))
	grows := func(what string, a, b float64) {
		v.say(b <= mostGrowth*a, "%s for each of %d machines is %.2f times that of %d (%.1f and %.1f) <= %.1f", what, large, b/max(a, 1e-9), base, b, a, mostGrowth)
	}
	switch {
	case a.unread()+b.unread() == 0:
		grows("CPU time in ms", float64(a.cpu())/1e6, float64(b.cpu())/1e6)
	case v.goos != "linux":
		fmt.Fprintf(v.out, "-    CPU time was not measured: %s does not tell it here\n", v.goos)
	}
	grows("number of writes", a.writes("control")+a.writes("target"), b.writes("control")+b.writes("target"))
}

// pick returns the smallest size that is a few, and the largest, if that is many.
func pick(sizes map[int]result) (base, large int) {
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		if size >= few && base == 0 {
			base = size
		}
		large = size
	}
	if large < many || large == base {
		return 0, 0
	}
	return base, large
}
