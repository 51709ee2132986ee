// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"slices"
	"time"
)

// A gate is one key of a PermitGiver: an account of endless leases without a
// holder, and those who wait for one. It has no lock; the giver does. Somebody
// waits only while the account is full.
type gate struct {
	account
	permits int
	used    time.Duration // when the gate was last used, since the giver's epoch
	waiting []chan bool   // the longest first; each takes exactly one answer
}

// enter takes a permit if one is free.
func (g *gate) enter() bool {
	if g.full(g.permits) {
		return false
	}
	g.leases = append(g.leases, Lease{})
	return true
}

// exit hands a taken permit to the next in the queue, or frees it. It reports
// whether there was one.
func (g *gate) exit() bool {
	if len(g.leases) == 0 {
		return false
	}
	if len(g.waiting) > 0 {
		g.waiting[0] <- true
		g.waiting = slices.Delete(g.waiting, 0, 1)
		return true
	}
	g.leases = g.leases[:len(g.leases)-1]
	return true
}

// queue adds a waiter and returns where its answer will be.
func (g *gate) queue() chan bool {
	turn := make(chan bool, 1) // so that answering never blocks
	g.waiting = append(g.waiting, turn)
	return turn
}

// leave removes a waiter that has had no answer, and reports whether it was so.
func (g *gate) leave(turn chan bool) bool {
	i := slices.Index(g.waiting, turn)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// dismiss answers everybody who waits with false.
func (g *gate) dismiss() {
	for _, turn := range g.waiting {
		turn <- false
	}
	g.waiting = nil
}

// touch notes a use. Callers read the clock before they get the lock, so that
// now may be a little older than what is noted.
func (g *gate) touch(now time.Duration) {
	g.used = max(g.used, now)
}

// idle returns for how long nobody has used the gate; zero if a permit is taken.
func (g *gate) idle(now time.Duration) time.Duration {
	if len(g.leases) > 0 {
		return 0
	}
	return now - g.used
}
