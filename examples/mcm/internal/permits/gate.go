// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"slices"
	"time"
)

// gate is one key of a PermitGiver and the calls that wait for a permit. Calls wait only while all
// permits are taken. The giver has the lock.
type gate struct {
	permits int
	taken   int
	used    time.Duration // when the gate was last used, since the giver's epoch
	waiting []chan bool   // the longest wait first; each channel takes one result
}

// enter takes a permit if one is free.
func (g *gate) enter() bool {
	if g.taken >= g.permits {
		return false
	}
	g.taken++
	return true
}

// exit gives a taken permit to the call that has waited longest, or frees it. It reports
// whether a permit was taken.
func (g *gate) exit() bool {
	if g.taken == 0 {
		return false
	}
	if len(g.waiting) > 0 {
		g.waiting[0] <- true
		g.waiting = slices.Delete(g.waiting, 0, 1)
		return true
	}
	g.taken--
	return true
}

// queue adds a waiting call and returns the channel of its result.
func (g *gate) queue() chan bool {
	turn := make(chan bool, 1) // so that sending the result never blocks
	g.waiting = append(g.waiting, turn)
	return turn
}

// leave removes a waiting call, and reports whether it was still waiting.
func (g *gate) leave(turn chan bool) bool {
	i := slices.Index(g.waiting, turn)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// dismiss ends all waiting calls with false.
func (g *gate) dismiss() {
	for _, turn := range g.waiting {
		turn <- false
	}
	g.waiting = nil
}

// touch records a use. Callers read the clock before they get the lock, so now may be earlier
// than the recorded use.
func (g *gate) touch(now time.Duration) {
	g.used = max(g.used, now)
}

// idle returns the time since the last use, and zero while a permit is taken.
func (g *gate) idle(now time.Duration) time.Duration {
	if g.taken > 0 {
		return 0
	}
	return now - g.used
}
