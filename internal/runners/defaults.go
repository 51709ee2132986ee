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

// Suffix returns five random characters for machineset.NewMachine, without vowels. random returns numbers in
// [0, 1). With a nil random the suffix is always the same.
func Suffix(random func() float64) string {
	const characters = "bcdfghjklmnpqrstvwxz2456789"
	var s [5]byte
	for i := range s {
		var r float64
		if random != nil {
			r = random()
		}
		s[i] = characters[min(max(int(r*float64(len(characters))), 0), len(characters)-1)]
	}
	return string(s[:])
}
