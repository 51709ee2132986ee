// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"math"
	"time"
)

// unbounded is a bound that is never exceeded.
const unbounded = math.MaxInt

// span is a bound and when it may have been in force.
type span struct {
	value        int
	since, until time.Time // a zero until means until now
}

// timeline is how a bound changed.
type timeline []span

// set lets another bound be in force from now on: it was written between earliest
// and latest.
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

// unknown says that any bound may have been in force between two times.
func (t *timeline) unknown(earliest, latest time.Time) {
	*t = append(timeline{{value: unbounded, since: earliest, until: latest}}, *t...)
}

// most returns the largest bound that may have been in force at some time between
// two; a zero to means the latest one as well. Where none is known, none is broken.
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
