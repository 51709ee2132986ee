// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Pace says how one category waits: Base after the first failure, then Factor
// times longer after each further one, never longer than Cap, and shortened by
// up to the share Jitter so that many callers do not return together.
//
// Each field that is zero, negative or not a number takes the category's
// default.
type Pace struct {
	// Base is the wait after the first failure.
	Base time.Duration `json:"base,omitempty"`
	// Factor is the growth from one wait to the next; 1 is a constant pace. A
	// factor between 0 and 1 counts as 1: waits never shrink.
	Factor float64 `json:"factor,omitempty"`
	// Cap is the longest wait, and wins over Base. If only Base is given, and
	// is above the default cap, then Base is the cap.
	Cap time.Duration `json:"cap,omitempty"`
	// Jitter is the share of the wait, above 0 and up to 0.9, that chance may
	// take away; more counts as 0.9. For no jitter give [Backoff] no source.
	Jitter float64 `json:"jitter,omitempty"`
}

// A BackoffPolicy holds a [Pace] for each category that waits, and a limit for
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
	// RetryLater is the pace of the category of that name, and of values
	// outside the set of categories.
	RetryLater Pace `json:"retryLater,omitzero"`
	// RetrySoon is the pace of the category of that name.
	RetrySoon Pace `json:"retrySoon,omitzero"`
	// WaitForCapacity is the pace of the category of that name.
	WaitForCapacity Pace `json:"waitForCapacity,omitzero"`
	// FixRequest is the pace of the category of that name.
	FixRequest Pace `json:"fixRequest,omitzero"`
	// FixCredentials is the pace of the category of that name.
	FixCredentials Pace `json:"fixCredentials,omitzero"`
	// TreatAsAbsent is the pace of the category of that name, for callers that
	// cannot go on: a creation that answers NotFound.
	TreatAsAbsent Pace `json:"treatAsAbsent,omitzero"`
	// TreatAsUnsupported is the pace of the category of that name, for callers
	// that cannot go on without the operation.
	TreatAsUnsupported Pace `json:"treatAsUnsupported,omitzero"`
	// Adopt is the pace of the category of that name, for callers that found
	// nothing to take over.
	Adopt Pace `json:"adopt,omitzero"`
	// Initialize is the pace of the category of that name, for callers that
	// cannot initialise.
	Initialize Pace `json:"initialize,omitzero"`
	// Investigate is the pace of the category of that name.
	Investigate Pace `json:"investigate,omitzero"`
	// RetryAfterCap limits what a provider may ask for with a retry-after time.
	// Zero and less mean one hour.
	RetryAfterCap time.Duration `json:"retryAfterCap,omitempty"`
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
	if c == Proceed {
		return Pace{}
	}
	given, fallback := p.given(c)
	return given.or(fallback)
}

// given returns the pace that p states for category c, and the default that
// fills its gaps.
func (p BackoffPolicy) given(c Category) (given, fallback Pace) {
	switch c {
	case RetrySoon:
		return p.RetrySoon, soonPace
	case WaitForCapacity:
		return p.WaitForCapacity, capacityPace
	case FixRequest:
		return p.FixRequest, laterPace
	case FixCredentials:
		return p.FixCredentials, laterPace
	case TreatAsAbsent:
		return p.TreatAsAbsent, laterPace
	case TreatAsUnsupported:
		return p.TreatAsUnsupported, laterPace
	case Adopt:
		return p.Adopt, laterPace
	case Initialize:
		return p.Initialize, laterPace
	case Investigate:
		return p.Investigate, laterPace
	default:
		return p.RetryLater, laterPace
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

// Validate returns an error that names every field whose value [Backoff] would
// replace by another, other than zero, which stands for the default. It is for
// shells, once at the start; Backoff itself is safe with any policy.
func (p BackoffPolicy) Validate() error {
	var faults []error
	for _, c := range Categories() {
		if c == Proceed {
			continue
		}
		given, _ := p.given(c)
		faults = append(faults, given.validate(c))
	}
	if p.RetryAfterCap < 0 {
		faults = append(faults, fmt.Errorf("backoff policy: retryAfterCap %s is negative", p.RetryAfterCap))
	}
	return errors.Join(faults...)
}

// validate returns the faults of a pace that was given for category c.
func (p Pace) validate(c Category) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("backoff policy: %s: %s", c, fmt.Sprintf(format, args...)))
	}
	if p.Base < 0 {
		fault("base %s is negative", p.Base)
	}
	if p.Cap < 0 {
		fault("cap %s is negative", p.Cap)
	}
	if p.Cap > 0 && p.Base > p.Cap {
		fault("base %s is above cap %s", p.Base, p.Cap)
	}
	if math.IsNaN(p.Factor) || (p.Factor != 0 && p.Factor < 1) {
		fault("factor %g is below 1", p.Factor)
	}
	if math.IsNaN(p.Jitter) || p.Jitter < 0 || p.Jitter > maxJitter {
		fault("jitter %g is not between 0 and %g", p.Jitter, maxJitter)
	}
	return errors.Join(faults...)
}
