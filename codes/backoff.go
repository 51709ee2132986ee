// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"fmt"
	"strings"
	"time"
)

// A Failure is what [Backoff] needs to know of an operation that failed. It is
// a plain value, so that a caller can keep it across passes.
//
// The zero Failure waits as a first failure of [RetryLater] does.
type Failure struct {
	// Category is what the code of the failure asks for.
	Category Category
	// Attempts is how often the operation has failed in a row. It is the
	// caller's to count, per whatever key the caller finds right. Less than 1
	// counts as 1.
	Attempts int
	// RetryAfter is the wait that the provider asked for; zero and less mean
	// that it did not.
	RetryAfter time.Duration
}

// FailureOf returns the failure that err is, with the category of [Of] and the
// time of [RetryAfterOf], after so many failures in a row. A nil err is no
// failure: its category is [Proceed] and its wait nothing.
func FailureOf(err error, attempts int) Failure {
	return Failure{Category: Of(err).Category(), Attempts: attempts, RetryAfter: RetryAfterOf(err)}
}

// Backoff returns how long to wait before the operation is tried again:
//
//   - for [Proceed] nothing;
//   - else Base × Factor^(Attempts-1) of the category's [Pace], at most Cap, less
//     a random share of at most Jitter;
//   - but not less than the provider asked for. That in turn is limited by
//     RetryAfterCap and, being the same for all callers, lengthened by a random
//     share of at most Jitter within that limit.
//
// jitter is asked for numbers from 0 up to 1 (rand.Float64 will do), at most
// twice; what lies outside counts as the nearest bound, and what is not a number
// as 0. With a nil jitter the wait is exact, and a pure function of policy and
// failure.
//
// The wait is positive for all categories but Proceed, never falls with more
// attempts (without jitter), and is never above the larger of Cap and
// RetryAfterCap, for any policy and any number of attempts. From 1000 attempts
// on it grows no more.
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

// maxSteps bounds the work that a huge number of attempts makes.
const maxSteps = 1000

// after returns the wait after so many failures, without chance. p has its
// defaults filled in. Repeated multiplication keeps the waits in order, which
// the rounding of a power would not.
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

// share returns a random part of d, of at most portion, which is at most
// maxJitter: always less than d.
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

// Table returns the waits of p without chance: one line for each pace, one column for each of
// the first eight attempts in a row. Its form may change.
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
