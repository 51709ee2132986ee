// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"errors"
	"fmt"
	"time"
)

// Policy limits the deletion of VMs and side resources. The zero Policy deletes nothing and
// reports them as holds. A duration of zero or less means the default.
type Policy struct {
	// Grace is the minimum time between the two listings that show a VM without a machine.
	// It is also the time until a deletion is proposed again. Default 10m, longer than the
	// delay of a cloud's listing.
	Grace time.Duration
	// Period is the time between two listings without problems, and the period of
	// MaxDeletions. Default 15m, as in MCM.
	Period time.Duration

	// MaxDeletions is the number of deletions within Period, in all classes that share a
	// [State]. Zero or less deletes nothing.
	MaxDeletions int
	// MaxPercent is the percentage of VMs in a listing that may have no certain machine. One
	// VM is always allowed. Above it the class is held and Grace starts again. The class is
	// also held if more than MaxPercent of its machines have no listed VM.
	//
	// VMs deleted within 24 hours in the namespace count as VMs without a machine. A State
	// younger than 24 hours allows the part of MaxPercent that its age is of 24 hours. A
	// "SecondVM" does not count. Below 0 means 0. At 100 or more there is no limit.
	MaxPercent int
}

// DefaultPolicy returns a policy that deletes at most 5 VMs in 15 minutes, after a grace of
// 10 minutes. It deletes at most 20 % of the VMs of a class in a day, or one.
func DefaultPolicy() Policy {
	p := Policy{MaxDeletions: 5, MaxPercent: 20}
	return p.withDefaults()
}

// Validate returns an error for negative numbers and for a percentage above 100. [Step]
// accepts them as the policy documents.
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

// maxAge is the maximum age of a list.
const maxAge = 5 * time.Minute

// maxDuration limits durations so that sums do not overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// withDefaults returns the policy with defaults and limits applied.
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

// retry returns the time to the next listing after an unusable one.
func (p Policy) retry() time.Duration { return min(time.Minute, p.Period) }

// memory returns how long a VM without a machine is remembered between two listings that
// show it. After that Grace starts again.
func (p Policy) memory() time.Duration { return max(2*time.Hour, 2*p.Grace, 2*p.Period) }
