// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"k8s.io/utils/clock"
)

// fastClock is a clock that starts with the real time and is faster by a factor. It is safe for
// several goroutines.
type fastClock struct {
	clock.RealClock
	start time.Time
	speed float64
}

func newFastClock(speed float64) *fastClock { return &fastClock{start: time.Now(), speed: speed} }

// real returns the real duration of a duration of this clock.
func (c *fastClock) real(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/c.speed), min(d, time.Microsecond))
}

// atLeast returns d, or the duration of this clock for shortest in real time, whichever is longer.
func (c *fastClock) atLeast(d, shortest time.Duration) time.Duration {
	return max(d, time.Duration(float64(shortest)*c.speed))
}

// Now returns the time of this clock.
func (c *fastClock) Now() time.Time {
	return c.start.Add(time.Duration(float64(time.Since(c.start)) * c.speed))
}

// Since returns the time of this clock since t.
func (c *fastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After returns a channel that receives after d of this clock.
func (c *fastClock) After(d time.Duration) <-chan time.Time { return c.RealClock.After(c.real(d)) }

// Sleep waits for d of this clock.
func (c *fastClock) Sleep(d time.Duration) { c.RealClock.Sleep(c.real(d)) }

// Tick returns a channel that receives every d of this clock.
func (c *fastClock) Tick(d time.Duration) <-chan time.Time { return c.RealClock.Tick(c.real(d)) }

// NewTimer returns a timer for d of this clock.
func (c *fastClock) NewTimer(d time.Duration) clock.Timer {
	return fastTimer{Timer: c.RealClock.NewTimer(c.real(d)), clock: c}
}

// NewTicker returns a ticker for d of this clock.
func (c *fastClock) NewTicker(d time.Duration) clock.Ticker { return c.RealClock.NewTicker(c.real(d)) }

// AfterFunc calls f after d of this clock.
func (c *fastClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return fastTimer{Timer: c.RealClock.AfterFunc(c.real(d), f), clock: c}
}

type fastTimer struct {
	clock.Timer
	clock *fastClock
}

// Reset restarts the timer for d of its clock.
func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(t.clock.real(d)) }
