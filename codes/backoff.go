// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"fmt"
	"strings"
	"time"
)

// A Failure describes a failed operation for [Backoff]. The zero Failure is a first failure
// of [RetryLater].
type Failure struct {
	// Category of the error.
	Category Category
	// Attempts is the number of failures in a row, counted by the caller. Less than 1 means
	// 1.
	Attempts int
	// RetryAfter is the wait that the provider requested. Zero or less means none.
	RetryAfter time.Duration
}

// FailureOf returns the [Failure] of err, with the category of [Of] and the time of
// [RetryAfterOf]. attempts is the number of failures in a row. A nil err has the category
// [Proceed] and no wait.
func FailureOf(err error, attempts int) Failure {
	return Failure{Category: Of(err).Category(), Attempts: attempts, RetryAfter: RetryAfterOf(err)}
}

// Backoff returns the wait before the next attempt of an operation:
//
//   - Zero for [Proceed].
//   - Otherwise Base × Factor^(Attempts-1) of the category's [Pace], at most Cap, minus a
//     random share of at most Jitter.
//   - At least the time that the provider requested, at most RetryAfterCap. A random share of
//     at most Jitter is added to it within that limit.
//
// jitter returns numbers from 0 to 1, such as rand.Float64. It is called at most twice.
// Numbers outside count as 0 or 1, and NaN as 0. Without jitter the wait is exact.
//
// The wait is positive for all categories except Proceed. It is at most the larger of Cap and
// RetryAfterCap. From 1000 attempts on it stays the same.
func Backoff(p BackoffPolicy, f Failure, jitter func() float64) time.Duration {
	if f.Category == Proceed {
		return 0
	}
	pace := p.Pace(f.Category)
	wait := pace.after(f.Attempts)
	wait -= share(wait, pace.Jitter, jitter)
	if f.RetryAfter <= 0 {
		return wait
	}
	limit := p.retryAfterCap()
	asked := min(f.RetryAfter, limit)
	asked += min(share(asked, pace.Jitter, jitter), limit-asked)
	return max(wait, asked)
}

// maxSteps limits the number of multiplications.
const maxSteps = 1000

// after returns the wait without jitter. p has its defaults. Repeated multiplication keeps the
// waits in order; a power may be rounded down.
func (p Pace) after(attempts int) time.Duration {
	wait, limit := float64(p.Base), float64(p.Cap)
	for range min(max(attempts, 1), maxSteps) - 1 {
		if wait >= limit || p.Factor == 1 {
			break
		}
		wait *= p.Factor
	}
	if wait >= limit {
		return p.Cap
	}
	return time.Duration(wait)
}

// share returns a random part of d, at most portion. It is less than d.
func share(d time.Duration, portion float64, jitter func() float64) time.Duration {
	if jitter == nil {
		return 0
	}
	drawn := jitter()
	if !(drawn > 0) { // also true of NaN
		return 0
	}
	return time.Duration(float64(d) * portion * min(drawn, 1))
}

// Table returns the waits of p without jitter, with a line for each pace and a column for each
// of the first eight attempts. Its form may change.
func (p BackoffPolicy) Table() string {
	var b strings.Builder
	for _, c := range []Category{RetryLater, RetrySoon, WaitForCapacity} {
		fmt.Fprintf(&b, "%-16s", c)
		for attempts := range 8 {
			fmt.Fprintf(&b, " %6s", Backoff(p, Failure{Category: c, Attempts: attempts + 1}, nil))
		}
		b.WriteString("\n")
	}
	return b.String()
}
