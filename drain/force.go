// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// force is what the rungs that have been reached allow.
type force struct {
	ignoreBudgets, ignoreProtection, forceDelete bool
	// grace is the cap, or zero for none.
	grace time.Duration
	// end is Proceed, GiveUp or empty.
	end Escalation
	// rungs are those reached; next is the one to come.
	rungs  []Rung
	next   Escalation
	nextAt time.Time
}

// climb notes the rungs that are reached now, and what they allow.
func (r *round) climb() {
	start := r.p.Anchor.At
	if start.IsZero() {
		start = r.s.Started
	}
	r.s.Reached = r.climbOne(r.p.Ladder, start, r.s.Reached)
	if r.s.UnreachableSince.IsZero() {
		return
	}
	start = r.in.Reach.Since
	if start.IsZero() {
		start = r.s.UnreachableSince
	}
	r.s.UnreachableReached = r.climbOne(r.p.UnreachableLadder, start, r.s.UnreachableReached)
}

// climbOne notes the rungs of one ladder that are reached now. A rung that was
// reached late puts those above it off by as much.
func (r *round) climbOne(l Ladder, start time.Time, before []Reached) []Reached {
	if l.Validate() != nil {
		return nil
	}
	var reached []Reached
	for i, rung := range l {
		due := start.Add(rung.After)
		if i > 0 {
			due = latest(due, reached[i-1].At.Add(rung.After-l[i-1].After))
		}
		at := r.now
		if i < len(before) && before[i].Rung == rung && !before[i].At.After(r.now) {
			at = before[i].At
		} else {
			before = slices.Clip(before[:min(i, len(before))])
			if r.now.Before(due) {
				r.force.expect(rung, due)
				break
			}
		}
		if rung.IfOff && r.in.Reach.State != PoweredOff {
			// it waits, and those above it do not
			reached = append(reached, Reached{Rung: rung, At: at})
			continue
		}
		reached = append(reached, Reached{Rung: rung, At: at})
		r.force.allow(rung)
	}
	return reached
}

// allow adds what a rung allows.
func (f *force) allow(rung Rung) {
	f.rungs = append(f.rungs, rung)
	switch rung.Do {
	case CapGrace:
		grace := max(rung.Grace, shortestGrace)
		if f.grace == 0 || grace < f.grace {
			f.grace = grace
		}
	case IgnoreBudgets:
		f.ignoreBudgets = true
	case IgnoreProtection:
		f.ignoreBudgets, f.ignoreProtection = true, true
	case ForceDeletePods:
		f.ignoreBudgets, f.forceDelete = true, true
	case Proceed, GiveUp:
		if f.end != Proceed {
			f.end = rung.Do
		}
	}
}

// expect notes the rung that comes next.
func (f *force) expect(rung Rung, at time.Time) {
	if f.nextAt.IsZero() || at.Before(f.nextAt) {
		f.next, f.nextAt = rung.Do, at
	}
}

// any says whether something is allowed that was not at the beginning.
func (f *force) any() bool { return len(f.rungs) > 0 }

// Validate says what is wrong with the ladder, as a *[LadderError], or nil.
func (l Ladder) Validate() error {
	for i, rung := range l {
		switch {
		case rung.After < 0:
			return &LadderError{Rung: i, Problem: "it is before the anchor"}
		case i > 0 && rung.After < l[i-1].After:
			return &LadderError{Rung: i, Problem: "it comes before the rung below it"}
		case i > 0 && (l[i-1].Do == Proceed || l[i-1].Do == GiveUp):
			return &LadderError{Rung: i, Problem: "it is above the end"}
		case rung.Do == CapGrace && rung.Grace < shortestGrace:
			return &LadderError{Rung: i, Problem: "a grace is a second at least"}
		}
		switch rung.Do {
		case CapGrace, IgnoreBudgets, IgnoreProtection, ForceDeletePods, Proceed, GiveUp:
		default:
			return &LadderError{Rung: i, Problem: "it does nothing that is known"}
		}
	}
	return nil
}

// request returns what is asked for a pod that is to go, under what is allowed.
func (r *round) request(pod *corev1.Pod) Row {
	f := r.force
	last := r.s.Pods[pod.UID].Answer
	row := Row{Verdict: Evict, Reason: ReasonEvict, Grace: r.grace(pod)}
	if f.ignoreBudgets {
		row.Verdict, row.Reason = Delete, ReasonForced
	}
	if f.forceDelete {
		row.Verdict, row.Grace = ForceDelete, new(int64(0))
	}
	if f.ignoreBudgets && !r.s.UnreachableSince.IsZero() {
		row.Reason = ReasonUnreachable
	}
	if !pod.DeletionTimestamp.IsZero() {
		if !f.any() || row.Grace == nil || deletedWithin(pod, *row.Grace) {
			return r.terminating(pod)
		}
		if row.Verdict == Evict { // budgets do not protect what is on its way out
			row.Verdict, row.Reason = Delete, ReasonForced
		}
	}
	if last.holds(row.Verdict, r.p, r.now) {
		return last.row()
	}
	row.Until = r.now.Add(r.p.retryEvery())
	return row
}

// grace returns how many seconds a request gives a pod, or nil for its own.
func (r *round) grace(pod *corev1.Pod) *int64 {
	limit := r.force.grace
	if r.p.MaxGrace > 0 {
		policy := max(r.p.MaxGrace, shortestGrace)
		if limit == 0 || policy < limit {
			limit = policy
		}
	}
	own := pod.Spec.TerminationGracePeriodSeconds
	if limit == 0 || own != nil && *own >= 1 && *own <= int64(limit/time.Second) {
		return nil
	}
	return new(int64(limit / time.Second))
}

// terminating waits for a pod that is on its way out.
func (r *round) terminating(pod *corev1.Pod) Row {
	end := pod.DeletionTimestamp.Time
	if end.After(r.now) {
		return Row{Verdict: Wait, Reason: ReasonTerminating, Until: end}
	}
	return Row{Verdict: Wait, Reason: ReasonOverdue, Message: overdue(pod), Until: r.now.Add(lookAgain)}
}
