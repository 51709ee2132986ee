// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"errors"
	"fmt"
	"time"
)

// Policy says how much evidence is asked for, and how much may be deleted. The
// zero Policy deletes nothing: it reports what it would delete as holds.
//
// A duration of zero or less means the default. There is no policy without a
// grace.
type Policy struct {
	// Grace is how far apart two listings must be that show the VM unowned, with
	// no other finding between them; and how long a deletion may take before it is
	// proposed again. Default 10 minutes, which is longer than a cloud's listing
	// lags behind, and than an API server is usually restored in.
	Grace time.Duration
	// Period is the time between two looks when nothing is wrong, and the window
	// of MaxDeletions. Default 15 minutes, as in the reference system.
	Period time.Duration

	// MaxDeletions is how many deletions are proposed within Period, in all
	// classes that share a [State]. Zero or less deletes nothing.
	MaxDeletions int
	// MaxPercent is how much of a listing may be without a machine or in doubt, in
	// percent; one VM is never too many. What was deleted within the last 24 hours in
	// the namespace of the class counts as listed and without a machine. A younger State
	// allows as much of MaxPercent as its age is of 24 hours. If there is more, the
	// machines are doubted, not the VMs: the class is held, and Grace begins anew when
	// there is less. The class is held as well if the listing lacks the VMs of more than
	// MaxPercent of its machines, or of all. A [SecondVM] does not count: the
	// machine that has another one is there. Below 0 counts as 0. With 100 or more the
	// share does not matter.
	MaxPercent int
}

// DefaultPolicy returns a policy that deletes: at most 5 VMs in 15 minutes, each
// unowned for 10 minutes, and at most 20 % of the VMs of a class in a day, or one.
func DefaultPolicy() Policy {
	p := Policy{MaxDeletions: 5, MaxPercent: 20}
	return p.withDefaults()
}

// Validate tells of numbers that make no sense. [Step] does not need it: it
// reads every policy in the cautious way.
func (p Policy) Validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{"Grace": p.Grace, "Period": p.Period} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s %s is negative", name, d))
		}
	}
	if p.MaxDeletions < 0 {
		errs = append(errs, fmt.Errorf("MaxDeletions %d is negative", p.MaxDeletions))
	}
	if p.MaxPercent < 0 || p.MaxPercent > 100 {
		errs = append(errs, fmt.Errorf("MaxPercent %d is not between 0 and 100", p.MaxPercent))
	}
	return errors.Join(errs...)
}

// maxAge is how old listings may be.
const maxAge = 5 * time.Minute

// maxDuration keeps sums of durations from overflowing.
const maxDuration = 10 * 365 * 24 * time.Hour

// withDefaults returns the policy as it is read.
func (p Policy) withDefaults() Policy {
	fill := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
		*d = min(*d, maxDuration)
	}
	fill(&p.Grace, 10*time.Minute)
	fill(&p.Period, 15*time.Minute)
	p.MaxDeletions = max(p.MaxDeletions, 0)
	p.MaxPercent = min(max(p.MaxPercent, 0), 100)
	return p
}

// retry is the time to the next look after evidence that was not good enough.
func (p Policy) retry() time.Duration { return min(time.Minute, p.Period) }

// memory is how long a finding counts that is not confirmed. After it, Grace begins anew.
func (p Policy) memory() time.Duration { return max(2*time.Hour, 2*p.Grace, 2*p.Period) }
