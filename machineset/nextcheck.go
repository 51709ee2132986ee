// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"time"

	"github.com/machinist-dev/machinist"
)

// wake moves the next check forward, never further than one Unseen from now: an
// entry may carry the time of a clock that was ahead.
func (s *pass) wake(at time.Time) {
	if latest := s.now.Add(s.policy.Unseen); at.After(latest) {
		at = latest
	}
	s.pending = machinist.Earliest(s.pending, at)
}

// done fills in the reason and the next check.
func (s *pass) done() Decision {
	s.d.Reason = summary(s.d)
	next := s.pending
	if len(s.d.Actions) > 0 {
		next = machinist.Earliest(next, s.now.Add(s.policy.Unseen))
	}
	for _, h := range s.d.Holds {
		next = machinist.Earliest(next, cmp.Or(h.Until, s.now.Add(s.policy.Recheck)))
	}
	s.d.NextCheck = next
	return s.d
}

func summary(d Decision) machinist.Reason {
	for _, a := range d.Actions {
		switch a := a.(type) {
		case Delete:
			return a.Reason
		case Create:
			return ReasonTooFew
		case AddFinalizer, RemoveFinalizer, Sync, Look: // speak only if nothing weightier does
		}
	}
	if len(d.Actions) == 0 {
		if len(d.Holds) == 0 {
			return ReasonSettled
		}
		return d.Holds[0].Reason
	}
	switch a := d.Actions[0].(type) {
	case AddFinalizer:
		return ReasonNoFinalizer
	case RemoveFinalizer:
		return ReasonNoMachineLeft
	case Sync:
		return a.Reason()
	default:
		return ReasonNotSeen
	}
}
