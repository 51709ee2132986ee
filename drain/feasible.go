// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"github.com/machinist-dev/machinist"
)

// Feasible says whether the drain can come to its end with what is known now: false if
// there are obstacles, if the policy contradicts itself or somebody took the fence
// away, if the drain was given up, or if it could not be planned at all. True is no
// promise: what is not evaluated may still refuse.
func (p Decision) Feasible() bool {
	if p.Reason == ReasonNotObserved || p.Outcome == GaveUp {
		return false
	}
	for _, g := range p.Gates {
		if g.Reason == ReasonInvalidPolicy || g.Reason == ReasonUncordoned {
			return false
		}
	}
	for i := range p.Rows {
		if p.stuck(&p.Rows[i]) {
			return false
		}
	}
	return true
}

// Refusals returns why the caller's policy, or a person who took a fence away, keeps the drain
// from its end. It is empty if the drain may begin. What belongs to others, such as a budget,
// or is not evaluated, does not count.
func (p Decision) Refusals() []machinist.Hold {
	if p.Over() {
		return nil
	}
	var refusals []machinist.Hold
	for _, g := range p.Gates {
		if g.Reason == ReasonUncordoned {
			refusals = append(refusals, g)
		}
	}
	for i := range p.Rows {
		if row := &p.Rows[i]; row.Verdict == Block && row.Reason != ReasonNotEvaluated && p.stuck(row) {
			refusals = append(refusals, row.hold())
		}
	}
	return refusals
}

// Obstacles returns the rows of the pods that no waiting helps and no rung of the
// ladder removes, in order: somebody has to change the pod, a budget, a permission or
// the policy. When the drain was given up it returns all that are left.
func (p Decision) Obstacles() []Row {
	var stuck []Row
	for i := range p.Rows {
		if p.stuck(&p.Rows[i]) {
			stuck = append(stuck, p.Rows[i])
		}
	}
	return stuck
}

// stuck says whether neither time nor the ladder helps a pod.
func (p Decision) stuck(row *Row) bool {
	switch {
	case row.Verdict != Wait && row.Verdict != Block:
		return false
	case p.Outcome == GaveUp:
		return true
	case row.Verdict == Block && !row.Until.IsZero(): // it ends by itself
		return false
	case row.Verdict == Wait && row.Reason != ReasonBudgetNever && row.Reason != ReasonBudgets && row.Reason != ReasonForbidden:
		return false
	}
	return !slices.ContainsFunc(p.Ladder, func(rung Rung) bool { return rung.removes(row.Reason) })
}

// removes says whether a rung does away with a reason for which a pod stays. One that
// waits for the instance to be off may never be reached.
func (r Rung) removes(reason machinist.Reason) bool {
	if r.IfOff {
		return false
	}
	switch r.Action {
	case Proceed:
		return true
	case IgnoreBudgets, ForceDeletePods:
		return reason == ReasonBudgetNever || reason == ReasonBudgets
	case IgnoreProtection:
		return reason != ReasonForbidden && reason != ReasonNoIdentity
	default:
		return false
	}
}

// ladder returns all rungs that apply.
func (r *round) ladder() Ladder {
	var all Ladder
	for _, l := range []Ladder{r.p.Ladder, r.p.UnreachableLadder} {
		if l.Validate() == nil {
			all = append(all, l...)
		}
		if r.s.UnreachableSince.IsZero() {
			break
		}
	}
	return slices.Clip(all)
}
