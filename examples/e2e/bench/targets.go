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
	// mostWrites is how many writes to the control cluster a life takes at most,
	// among many, so that what sets and deployments cost is spread out.
	mostWrites = 12
	// mostGrowth is by how much a life among many may cost more than one among a
	// few.
	mostGrowth = 1.3
	// few and many are how many these are at least.
	few, many = 20, 200
)

// judge prints whether the targets are met, and says so.
func judge(out io.Writer, single result, sizes map[int]result) bool {
	met := true
	fmt.Fprintln(out, "\n== targets")
	say := func(ok bool, format string, args ...any) {
		answer := "yes"
		if !ok {
			met, answer = false, "NO "
		}
		fmt.Fprintf(out, "%s  %s\n", answer, fmt.Sprintf(format, args...))
	}
	alone := series{}
	for _, one := range single.rounds {
		alone = append(alone, one.down)
	}
	took := max(alone.at(1), single.times(deleted, removed).at(1))
	say(took < slowest, "an empty machine is gone %s ms after the request < %s ms", millis(took), millis(slowest))
	base, large := pick(sizes)
	if large == 0 {
		fmt.Fprintf(out, "-    the rest takes a deployment of %d or more and one of %d or more\n", few, many)
		return met
	}
	a, b := sizes[base], sizes[large]
	writes := b.writes("control")
	say(writes <= mostWrites, "%.2f writes to the control cluster for each of %d lives <= %d (%.2f without the Events)",
		writes, large, mostWrites, writes-b.writes("control", "events"))
	grows := func(what string, a, b float64) {
		say(b <= mostGrowth*a, "%s for each of %d lives is %.2f times that of %d (%.1f and %.1f) <= %.1f", what, large, b/max(a, 1e-9), base, b, a, mostGrowth)
	}
	grows("CPU time in ms", float64(a.cpu())/1e6, float64(b.cpu())/1e6)
	grows("number of writes", a.writes("control")+a.writes("target"), b.writes("control")+b.writes("target"))
	return met
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
