// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Decide plans the first round of a drain: what would be done now, and what would
// be waited for. It is [Step] without a past.
func Decide(in Observation, p Policy, now time.Time) Plan {
	_, plan := Step(State{}, in, p, now)
	return plan
}

// Step plans one round of a drain that has a past, and returns what it has to
// remember. What it is given is not changed, and what it returns shares nothing with
// it that is changed later.
func Step(s State, in Observation, p Policy, now time.Time) (State, Plan) {
	r := newRound(s, in, p, now)
	plan := Plan{Node: nodeName(in.Node), NotEvaluated: in.missing(p)}
	switch reason, absent := in.absent(); {
	case p.Skip != "":
		plan.Outcome, plan.Reason, plan.Message = Skipped, ReasonSkipped, p.Skip
		return r.s, plan
	case absent:
		plan.Outcome, plan.Reason = NodeGone, reason
		return r.s, plan
	case !in.Looked || !in.Pods.Complete || in.Node.Name == "":
		plan.Reason, plan.NextCheck = ReasonNotObserved, now.Add(p.retryEvery())
		return r.s, plan
	}
	r.begin()
	plan.Gates = r.gates()
	plan.Fence = r.fence()
	plan.Rows = r.pods()
	r.holdWaves(plan.Rows)
	r.spendBudgets(plan.Rows)
	plan.Volumes = r.volumes(plan.Rows)
	r.holdGates(plan.Gates, plan.Rows)
	r.remember(plan.Rows, plan.Volumes)
	r.conclude(&plan)
	return r.s, plan
}

// round is one step in the making.
type round struct {
	s   State // the next one; its maps and slices belong to it
	in  Observation
	p   Policy
	now time.Time
	// force is what the rungs that were reached allow.
	force force
	// budgets, namespaces and so on are looked up once.
	lookup lookup
}

func newRound(s State, in Observation, p Policy, now time.Time) *round {
	r := &round{in: in, p: p, now: now}
	r.s = s.after(in.Results, p, now)
	return r
}

// begin notes what the drain counts its times from, and climbs the ladders.
func (r *round) begin() {
	if r.s.Started.IsZero() {
		r.s.Started = r.now
	}
	if r.in.Reach.State == Unreachable || r.in.Reach.State == PoweredOff {
		if r.s.UnreachableSince.IsZero() {
			r.s.UnreachableSince = r.now
		}
	} else {
		r.s.UnreachableSince, r.s.UnreachableReached = time.Time{}, nil
	}
	r.climb()
	r.lookup = newLookup(&r.in)
}

// conclude says whether the drain is over, and if not, when to decide again.
func (r *round) conclude(plan *Plan) {
	plan.Started, plan.GoneSoFar = r.s.Started, r.s.Gone
	plan.Rungs, plan.Next, plan.NextAt = r.force.rungs, r.force.next, r.force.nextAt
	waits := plan.Fence != nil && r.force.end == ""
	left := false
	for i := range plan.Rows {
		row := &plan.Rows[i]
		if row.Verdict == Ignore {
			left = left || row.Reason == ReasonAbandoned
			continue
		}
		waits = true
		plan.NextCheck = earliest(plan.NextCheck, earliest(row.Until, row.NextAt))
	}
	for _, v := range plan.Volumes {
		if v.Verdict != Ignore {
			waits = true
			plan.NextCheck = earliest(plan.NextCheck, v.Until)
		}
	}
	for _, g := range plan.Gates {
		waits = true
		plan.NextCheck = earliest(plan.NextCheck, g.Until)
	}
	switch {
	case waits && r.force.end == GiveUp:
		plan.Outcome, plan.NextCheck = GaveUp, time.Time{}
		return
	case waits:
		plan.NextCheck = earliest(plan.NextCheck, plan.NextAt)
		if plan.NextCheck.IsZero() {
			plan.NextCheck = r.now.Add(lookAgain)
		}
		if plan.Fence != nil {
			plan.NextCheck = earliest(plan.NextCheck, r.now.Add(r.p.retryEvery()))
		}
	case left:
		plan.Outcome = Proceeded
	default:
		plan.Outcome = Drained
	}
}

func nodeName(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	return node.Name
}

// earliest returns the earlier time; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// latest returns the later time.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
