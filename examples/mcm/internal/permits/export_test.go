// SPDX-License-Identifier: Apache-2.0

package permits

import "time"

// Gates returns how many keys pg has in memory, including stale ones.
func Gates(pg PermitGiver) int {
	g := pg.(*permitGiver)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.gates)
}

// Sweep removes stale keys of pg now, as a call does when it is due.
func Sweep(pg PermitGiver) {
	g := pg.(*permitGiver)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Since(g.epoch)
	g.swept = now - g.sweepEvery
	g.find("", now)
}
