// SPDX-License-Identifier: Apache-2.0

package codes

import "time"

// A Pace defines the waits of a category: Base after the first failure, multiplied by Factor
// after each further one, at most Cap, minus a random share of at most Jitter. A field that
// is zero, negative or NaN means the default of the category.
type Pace struct {
	// Base is the wait after the first failure.
	Base time.Duration
	// Factor is the growth from one wait to the next. Less than 1 means 1, a constant wait.
	Factor float64
	// Cap is the longest wait, even if Base is longer. Its default is at least Base.
	Cap time.Duration
	// Jitter is the largest random share by which a wait is shortened, at most 0.9. For no
	// jitter call [Backoff] with nil.
	Jitter float64
}

// A BackoffPolicy has the paces of the categories and the limit of a requested wait. The zero
// policy is the default. Its first waits are those of MCM after a failed creation:
//
//	RetrySoon                       5 s, doubling up to 3 min
//	WaitForCapacity                10 min, constant
//	all others                      3 min, doubling up to 10 min
//	jitter                          a fifth
//	longest requested wait          1 h
//
// It is comparable and has no pointers.
type BackoffPolicy struct {
	// RetryLater is the pace of all categories but those below.
	RetryLater Pace
	// RetrySoon is the pace of the category of that name.
	RetrySoon Pace
	// WaitForCapacity is the pace of the category of that name.
	WaitForCapacity Pace
	// RetryAfterCap is the limit of a wait that a provider requests. Zero or less means 1h.
	RetryAfterCap time.Duration
}

const (
	maxJitter            = 0.9
	defaultRetryAfterCap = time.Hour
)

// The default paces.
var (
	soonPace     = Pace{Base: 5 * time.Second, Factor: 2, Cap: 3 * time.Minute, Jitter: 0.2}
	laterPace    = Pace{Base: 3 * time.Minute, Factor: 2, Cap: 10 * time.Minute, Jitter: 0.2}
	capacityPace = Pace{Base: 10 * time.Minute, Factor: 1, Cap: 10 * time.Minute, Jitter: 0.2}
)

// Pace returns the pace of category c with all defaults. For [Proceed] it is zero.
func (p BackoffPolicy) Pace(c Category) Pace {
	switch c {
	case Proceed:
		return Pace{}
	case RetrySoon:
		return p.RetrySoon.or(soonPace)
	case WaitForCapacity:
		return p.WaitForCapacity.or(capacityPace)
	default:
		return p.RetryLater.or(laterPace)
	}
}

// or returns p with the fields of fallback for those that are not set.
func (p Pace) or(fallback Pace) Pace {
	if p.Base <= 0 {
		p.Base = fallback.Base
	}
	if !(p.Factor > 0) { // also true of NaN
		p.Factor = fallback.Factor
	}
	if p.Cap <= 0 {
		p.Cap = max(fallback.Cap, p.Base)
	}
	if !(p.Jitter > 0) { // also true of NaN
		p.Jitter = fallback.Jitter
	}
	p.Base = min(p.Base, p.Cap)
	p.Factor = max(p.Factor, 1)
	p.Jitter = min(p.Jitter, maxJitter)
	return p
}

// retryAfterCap returns the limit of a requested wait.
func (p BackoffPolicy) retryAfterCap() time.Duration {
	if p.RetryAfterCap <= 0 {
		return defaultRetryAfterCap
	}
	return p.RetryAfterCap
}
