// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"time"
)

// ForceAfter waits for budgets for so long, and deletes pods then with at most
// grace. What the policy or a rule protects stays protected. A grace of zero or less is
// the pods' own, a time of zero or less is at once.
func ForceAfter(after, grace time.Duration) Ladder {
	after = max(after, 0)
	l := Ladder{{After: after, Action: IgnoreBudgets}}
	if grace > 0 {
		l = append(l, Rung{After: after, Action: CapGrace, Grace: max(grace, shortestGrace)})
	}
	return l
}

// TerminateWithin makes sure that pods have stopped when the time is over, as the
// terminationGracePeriod of Karpenter does: each is deleted so early that its own
// grace fits, whatever its budget or its protection, and what is left in the end is
// left. A time of zero or less is at once.
func TerminateWithin(after time.Duration) Ladder {
	after = max(after, 0)
	return Ladder{{After: after, Action: IgnoreProtection, GraceFits: true}, {After: after, Action: Proceed}}
}

// ProceedAfter evicts pods for so long and goes on without those that are left then, as
// the nodeDrainTimeout of Cluster API says. Zero or less is for ever, as it is there.
func ProceedAfter(after time.Duration) Ladder {
	if after <= 0 {
		return nil
	}
	return Ladder{{After: after, Action: Proceed}}
}

// HurryTerminating is how Cluster API and OpenShift drain a Node that does not answer:
// budgets are asked, pods get a second, and those that were to stop are not waited
// for, since nobody says when they have. It is meant for [Policy.UnreachableLadder].
func HurryTerminating() Ladder {
	return Ladder{{Action: CapGrace, Grace: shortestGrace}, {Action: SkipTerminating}}
}

// ForceDeleteAfter takes pods off the API after so long, whether they run or not. With
// five minutes, as [Policy.UnreachableLadder], it is how the reference system drains a
// Node that does not answer. A time of zero or less is at once.
func ForceDeleteAfter(after time.Duration) Ladder {
	return Ladder{{After: max(after, 0), Action: ForceDeletePods}}
}

// Tighten returns a ladder that escalates whenever one of the two does, and ends with
// the one that ends first. Both are counted from the same anchor. A deadline that
// may only come closer is kept so. If one of the two is not valid it is returned as it
// is, and says so.
func (l Ladder) Tighten(m Ladder) Ladder {
	switch {
	case l.Validate() != nil:
		return slices.Clone(l)
	case m.Validate() != nil:
		return slices.Clone(m)
	}
	both := slices.Concat(l, m)
	slices.SortStableFunc(both, func(a, b Rung) int { // an end comes after all else of its time
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(endOrder(a.Action), endOrder(b.Action)))
	})
	var tight Ladder
	for _, rung := range both {
		if !slices.ContainsFunc(tight, func(below Rung) bool { return below.covers(rung) }) {
			tight = append(tight, rung)
		}
		if rung.Action.ends() {
			break
		}
	}
	return tight
}

// endOrder puts ends behind all else, and going on before giving up.
func endOrder(e Escalation) int {
	switch e {
	case Proceed:
		return 1
	case GiveUp:
		return 2
	default:
		return 0
	}
}

// covers says whether a later rung adds nothing.
func (r Rung) covers(later Rung) bool {
	if r.Action == CapGrace && later.Action == CapGrace {
		return r.Grace <= later.Grace
	}
	return r.like(later)
}
