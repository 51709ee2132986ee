// SPDX-License-Identifier: Apache-2.0

package codes

import "time"

// A Pace says how one category waits: Base after the first failure, then Factor
// times longer after each further one, never longer than Cap, and shortened by
// up to the share Jitter so that many callers do not return together.
//
// Each field that is zero, negative or not a number takes the category's
// default.
type Pace struct {
	// Base is the wait after the first failure.
	Base time.Duration
	// Factor is the growth from one wait to the next; 1 is a constant pace. A
	// factor between 0 and 1 counts as 1: waits never shrink.
	Factor float64
	// Cap is the longest wait, and wins over Base. If only Base is given, and
	// is above the default cap, then Base is the cap.
	Cap time.Duration
	// Jitter is the share of the wait, above 0 and up to 0.9, that chance may
	// take away; more counts as 0.9. For no jitter give [Backoff] no source.
	Jitter float64
}

// A BackoffPolicy holds the paces of the categories, and a limit for
// what a provider may ask for. The zero policy is the default; the first waits
// in it are the retry periods of the reference system after a failed creation:
//
//	RetrySoon                       5 s, doubling up to 3 min
//	WaitForCapacity                10 min, constant
//	all others                      3 min, doubling up to 10 min
//	jitter                          a fifth
//	longest wait asked for          1 h
//
// It is comparable and holds no pointers.
type BackoffPolicy struct {
	// RetryLater is the pace of all categories but those below.
	RetryLater Pace
	// RetrySoon is the pace of the category of that name.
	RetrySoon Pace
	// WaitForCapacity is the pace of the category of that name.
	WaitForCapacity Pace
	// RetryAfterCap limits what a provider may ask for with a retry-after time.
	// Zero and less mean one hour.
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

// Pace returns the pace of category c with all defaults filled in, as [Backoff]
// uses it. [Proceed] has none: the zero Pace.
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

// or fills what p does not say from the default pace.
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

// retryAfterCap returns the limit for what a provider asks for.
func (p BackoffPolicy) retryAfterCap() time.Duration {
	if p.RetryAfterCap <= 0 {
		return defaultRetryAfterCap
	}
	return p.RetryAfterCap
}
