// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"math"
	"time"
)

// unbounded is a bound that is never exceeded.
const unbounded = math.MaxInt

// span is a bound, and the interval in which it may have been in force.
type span struct {
	value        int
	since, until time.Time // a zero until means until now
}

// timeline is the history of a bound.
type timeline []span

// set adds a bound that was written between two times.
func (t *timeline) set(value int, earliest, latest time.Time) {
	if n := len(*t); n > 0 {
		last := &(*t)[n-1]
		if last.value == value {
			return
		}
		last.until = latest
	}
	*t = append(*t, span{value: value, since: earliest})
}

// unknown records that any bound may have been in force between two times.
func (t *timeline) unknown(earliest, latest time.Time) {
	*t = append(timeline{{value: unbounded, since: earliest, until: latest}}, *t...)
}

// most returns the largest bound that may have been in force between two times. A zero to includes
// the latest bound. Without a known bound it returns unbounded.
func (t *timeline) most(from, to time.Time) int {
	most, known := 0, false
	for _, s := range *t {
		if (to.IsZero() || !s.since.After(to)) && (s.until.IsZero() || !s.until.Before(from)) {
			most, known = max(most, s.value), true
		}
	}
	if !known {
		return unbounded
	}
	return most
}
