// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// Decide plans the first round of a drain: what would be done now, and what would
// be waited for. It is [Step] without a past.
func Decide(in Observation, p Policy, now time.Time) Decision {
	_, plan := Step(State{}, in, p, now)
	return plan
}

// Step plans one round of a drain that has a past, and returns what it has to
// remember. What it is given is not changed, and what it returns shares nothing with
// it that is changed later.
func Step(s State, in Observation, p Policy, now time.Time) (State, Decision) {
	r := newRound(s, in, p, now)
	plan := Decision{Node: nodeName(in.Node), NotEvaluated: in.missing(p)}
	switch reason, absent := in.absent(s.NodeUID); {
	case absent:
		plan.Outcome, plan.Reason = NodeGone, reason
		return r.s, plan
	case !in.Looked || !in.Pods.Complete || in.Node.Name == "":
		plan.Reason, plan.NextCheck = ReasonNotObserved, now.Add(p.retryEvery())
		return r.s, plan
	}
	r.begin()
	r.gates(&plan)
	plan.Rows = r.pods()
	r.holdGates(plan.Rows)
	r.holdWaves(plan.Rows)
	plan.Volumes = r.volumes(plan.Rows)
	r.spendBudgets(plan.Rows)
	r.limitVolumes(plan.Rows)
	r.leave(plan.Rows)
	r.leaveVolumes(plan.Volumes)
	r.remember(plan.Rows)
	r.rememberVolumes()
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
	// raised are the gates, closed the first that keeps requests back, or nil; open
	// says that the fence does not stand, notes is what else is to be said.
	raised []machinist.Hold
	closed *machinist.Hold
	open   bool
	notes  []string
	// budgets, namespaces and so on are looked up once.
	lookup lookup
	// budgets finds those of a pod.
	budgets budgetIndex
	// vol is what is known of the volumes.
	vol volumeView
}

func newRound(s State, in Observation, p Policy, now time.Time) *round {
	r := &round{in: in, p: p, now: now}
	r.s = s.after(in.Results, p, now)
	return r
}

// begin notes what the drain counts its times from, and climbs the ladders.
func (r *round) begin() {
	r.s.NodeUID = r.in.Node.UID
	if !recorded.Known(r.s.Started, r.now) {
		r.s.Started = r.now
	}
	if r.in.Reachability.State == Unreachable || r.in.Reachability.State == PoweredOff {
		if !recorded.Known(r.s.UnreachableSince, r.now) {
			r.s.UnreachableSince = r.now
		}
	} else {
		r.s.UnreachableSince, r.s.UnreachableReached = time.Time{}, nil
	}
	r.climb()
	r.budgets = newBudgetIndex(r.in.Budgets)
	r.forgetRefusals()
}

// conclude says whether the drain is over, and if not, when to decide again.
func (r *round) conclude(plan *Decision) {
	plan.Started, plan.GoneSoFar, plan.Rungs = r.s.Started, r.s.Gone, r.force.rungs
	plan.Ladder = r.ladder()
	if !r.open && !r.p.KeepSchedulable {
		plan.FencedAt = r.s.FencedAt
	}
	waits, left := r.pending(plan)
	switch {
	case waits && r.force.end == GiveUp:
		plan.Outcome = GaveUp
	case waits:
		plan.Next, plan.NextAt = r.force.next, r.force.nextAt
		plan.NextCheck = r.nextCheck(plan)
	case left:
		plan.Outcome = Proceeded
	default:
		plan.Outcome = Drained
	}
}

// pending says whether the drain waits for anything, and whether it leaves something
// behind.
func (r *round) pending(plan *Decision) (waits, left bool) {
	waits = plan.Fence != nil || len(plan.Gates) > 0
	left = r.open
	for i := range plan.Rows {
		row := &plan.Rows[i]
		waits = waits || row.Verdict != Ignore
		left = left || row.Verdict == Ignore && row.Reason == ReasonAbandoned
	}
	for _, v := range plan.Volumes {
		waits = waits || v.Verdict != Ignore
		left = left || v.left()
	}
	return waits, left
}

// nextCheck returns when to decide again: at the first time that anything waits for,
// and not in the past.
func (r *round) nextCheck(plan *Decision) time.Time {
	next := onlyLater(plan.NextAt, r.now)
	for i := range plan.Rows {
		row := &plan.Rows[i]
		if row.Verdict != Ignore {
			next = machinist.Earliest(next, machinist.Earliest(onlyLater(row.Until, r.now), onlyLater(row.NextAt, r.now)))
		}
	}
	for _, v := range plan.Volumes {
		if v.Verdict != Ignore {
			next = machinist.Earliest(next, onlyLater(v.Until, r.now))
		}
	}
	for _, g := range plan.Gates {
		next = machinist.Earliest(next, onlyLater(g.Until, r.now))
	}
	if plan.Fence != nil {
		next = machinist.Earliest(next, r.now.Add(r.p.retryEvery()))
	}
	if next.IsZero() {
		return r.now.Add(lookAgain)
	}
	return next
}

// onlyLater returns a time that is still to come, or zero.
func onlyLater(t, now time.Time) time.Time {
	if t.After(now) {
		return t
	}
	return time.Time{}
}

func nodeName(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	return node.Name
}

// latest returns the later time.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
