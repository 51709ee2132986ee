// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// fastClock is a clock that is faster than real time, and stands still while the program works. What
// is due at one time has happened before the next time comes, so that the load of the computer has no
// effect on what happens. The clock passes only in run. It is safe for several goroutines.
type fastClock struct {
	*clocktesting.FakeClock
	// speed is the factor by which the clock is faster than real time, at most.
	speed float64
}

// longestStep is the longest time by which the clock advances at once.
const longestStep = 50 * time.Millisecond

func newFastClock(speed float64) *fastClock {
	return &fastClock{clocktesting.NewFakeClock(time.Now()), speed}
}

// run advances the clock until the context ends. The clock stands still while busy returns true.
func (c *fastClock) run(ctx context.Context, busy func() bool) {
	step := min(longestStep, time.Duration(c.speed*float64(time.Millisecond)))
	ticker := time.NewTicker(time.Duration(float64(step) / c.speed))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !busy() {
				c.Step(step)
			}
		}
	}
}

// Sleep waits for d of this clock. That of FakeClock would advance it.
func (c *fastClock) Sleep(d time.Duration) { <-c.After(d) }
