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
	// MaxAge is how old listings may be. Default 5 minutes.
	MaxAge time.Duration
	// Period is the time between two looks when nothing is wrong, and the window
	// of MaxDeletions. Default 15 minutes, as in the reference system.
	Period time.Duration
	// Retry is the time to the next look after evidence that was not good enough.
	// Default 1 minute, at most Period.
	Retry time.Duration
	// Memory is how long a finding counts that is not confirmed. After it, Grace
	// begins anew. Default 2 hours; at least twice Grace and twice Period.
	Memory time.Duration

	// MaxDeletions is how many deletions are proposed within Period, in all
	// classes that share a [State]. Zero or less deletes nothing.
	MaxDeletions int
	// MaxPercent is how much of a listing may be without a machine or in doubt, in
	// percent. If it is more, the machines are doubted, not the VMs: the class is
	// held, and Grace begins anew when it is less. A [SecondVM] does not count: the
	// machine that has another one is there. Above 100 counts as 100, below 0 as 0.
	MaxPercent int
	// AlwaysFew is a number of such VMs which are not too many whatever
	// MaxPercent says, so that small classes are not held for ever.
	AlwaysFew int
	// EmptyInventory allows to delete while there is no machine at all in the
	// namespace of the class. Only whoever knows that there should be none may
	// say so, such as somebody who takes a cluster down.
	EmptyInventory bool
}

// DefaultPolicy returns a policy that deletes: at most 5 VMs in 15 minutes, each
// unowned for 10 minutes, and only while at most 20 % of the VMs of the listing,
// or one, are without a machine and there is at least one machine.
func DefaultPolicy() Policy {
	p := Policy{MaxDeletions: 5, MaxPercent: 20, AlwaysFew: 1}
	return p.withDefaults()
}

// Validate tells of numbers that make no sense. [Step] does not need it: it
// reads every policy in the cautious way.
func (p Policy) Validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"Grace": p.Grace, "MaxAge": p.MaxAge, "Period": p.Period, "Retry": p.Retry, "Memory": p.Memory,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s %s is negative", name, d))
		}
	}
	if p.MaxDeletions < 0 {
		errs = append(errs, fmt.Errorf("MaxDeletions %d is negative", p.MaxDeletions))
	}
	if p.AlwaysFew < 0 {
		errs = append(errs, fmt.Errorf("AlwaysFew %d is negative", p.AlwaysFew))
	}
	if p.MaxPercent < 0 || p.MaxPercent > 100 {
		errs = append(errs, fmt.Errorf("MaxPercent %d is not between 0 and 100", p.MaxPercent))
	}
	d := p.withDefaults()
	if p.Memory > 0 && p.Memory < d.Memory {
		errs = append(errs, fmt.Errorf("the duration Memory %s is less than twice Grace %s or twice Period %s", p.Memory, d.Grace, d.Period))
	}
	return errors.Join(errs...)
}

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
	fill(&p.MaxAge, 5*time.Minute)
	fill(&p.Period, 15*time.Minute)
	fill(&p.Retry, time.Minute)
	fill(&p.Memory, 2*time.Hour)
	p.Retry = min(p.Retry, p.Period)
	p.Memory = max(p.Memory, 2*p.Grace, 2*p.Period)
	p.MaxDeletions = max(p.MaxDeletions, 0)
	p.MaxPercent = min(max(p.MaxPercent, 0), 100)
	p.AlwaysFew = max(p.AlwaysFew, 0)
	return p
}

// tooMany says whether so many unowned VMs, of so many listed, speak against the
// machines rather than against the VMs.
func (p Policy) tooMany(unowned, listed int) bool {
	return unowned > p.AlwaysFew && unowned*100 > listed*p.MaxPercent
}
