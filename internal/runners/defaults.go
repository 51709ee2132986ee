// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"
)

// Now returns the time of a clock. Nil means the real clock.
func Now(c clock.PassiveClock) time.Time {
	if c == nil {
		return time.Now()
	}
	return c.Now()
}

// Random returns f. Nil means math/rand/v2.
func Random(f func() float64) func() float64 {
	if f == nil {
		return rand.Float64
	}
	return f
}
