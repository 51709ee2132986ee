// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// fastClock is a clock that is faster than real time, and stands still while the program works. What
// is due at one time has happened before the next time comes, so that the load of the computer has no
// effect on what happens. The clock passes only in run. It is safe for several goroutines.
type fastClock struct {
	// speed is the factor by which the clock is faster than real time, at most.
	speed float64

	mu     sync.Mutex
	now    time.Time
	timers []*fastTimer // those that run, the next first
}

// longestStep is the longest time by which the clock advances at once.
const longestStep = 50 * time.Millisecond

func newFastClock(speed float64) *fastClock { return &fastClock{speed: speed, now: time.Now()} }

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
				c.advance(step)
			}
		}
	}
}

// advance advances the clock and fires the timers that are due.
func (c *fastClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for len(c.timers) > 0 && !c.timers[0].due.After(c.now) {
		t := c.timers[0]
		c.timers = c.timers[1:]
		if t.every > 0 {
			c.start(t, t.every)
		}
		t.fire(c.now)
	}
}

// start starts a timer. The lock is held.
func (c *fastClock) start(t *fastTimer, d time.Duration) {
	t.due = c.now.Add(d)
	after := slices.IndexFunc(c.timers, func(other *fastTimer) bool { return other.due.After(t.due) })
	if after < 0 {
		after = len(c.timers)
	}
	c.timers = slices.Insert(c.timers, after, t)
}

// stop stops a timer, and reports whether it ran. The lock is held.
func (c *fastClock) stop(t *fastTimer) bool {
	select {
	case <-t.c: // as for timers of package time, no old time stays in the channel
	default:
	}
	i := slices.Index(c.timers, t)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	return true
}

// newTimer returns a timer that runs.
func (c *fastClock) newTimer(d, every time.Duration, f func()) *fastTimer {
	t := &fastTimer{clock: c, c: make(chan time.Time, 1), every: every, f: f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start(t, d)
	return t
}

// Now returns the time of this clock.
func (c *fastClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since returns the time of this clock since t.
func (c *fastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After returns a channel that receives after d of this clock.
func (c *fastClock) After(d time.Duration) <-chan time.Time { return c.newTimer(d, 0, nil).c }

// Sleep waits for d of this clock.
func (c *fastClock) Sleep(d time.Duration) { <-c.After(d) }

// Tick returns a channel that receives every d of this clock.
func (c *fastClock) Tick(d time.Duration) <-chan time.Time { return c.newTimer(d, d, nil).c }

// NewTimer returns a timer for d of this clock.
func (c *fastClock) NewTimer(d time.Duration) clock.Timer { return c.newTimer(d, 0, nil) }

// AfterFunc calls f in a goroutine of its own after d of this clock.
func (c *fastClock) AfterFunc(d time.Duration, f func()) clock.Timer { return c.newTimer(d, 0, f) }

// NewTicker returns a ticker for d of this clock.
func (c *fastClock) NewTicker(d time.Duration) clock.Ticker {
	return fastTicker{c.newTimer(d, d, nil)}
}

// fastTimer is a timer of a fastClock. The clock holds its lock when it calls fire.
type fastTimer struct {
	clock *fastClock
	c     chan time.Time
	due   time.Time
	every time.Duration // of a ticker
	f     func()        // of AfterFunc
}

func (t *fastTimer) fire(now time.Time) {
	if t.f != nil {
		go t.f()
		return
	}
	select {
	case t.c <- now:
	default: // a ticker that is not read
	}
}

// C returns the channel that receives the time.
func (t *fastTimer) C() <-chan time.Time { return t.c }

// Stop stops the timer, and reports whether it ran.
func (t *fastTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.clock.stop(t)
}

// Reset restarts the timer for d of its clock, and reports whether it ran.
func (t *fastTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	ran := t.clock.stop(t)
	t.clock.start(t, d)
	return ran
}

// fastTicker is a ticker of a fastClock.
type fastTicker struct{ *fastTimer }

// Stop stops the ticker.
func (t fastTicker) Stop() { t.fastTimer.Stop() }
