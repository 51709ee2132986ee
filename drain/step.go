// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// Decide returns the first decision of a drain, without any request: a dry run. It is [Step] with
// the zero state.
func Decide(in Observation, p Policy, now time.Time) Decision {
	_, d := Step(State{}, in, p, now)
	return d
}

// Step decides about a drain and returns the state to keep. It does not change its arguments. Its
// results do not change if the caller changes the arguments later.
func Step(s State, in Observation, p Policy, now time.Time) (State, Decision) {
	before := s.Volumes
	s = s.clone()
	s.Responses = recordResults(s.Responses, in.Results, p.pause(), now)
	d := Decision{NotEvaluated: in.incomplete(p.Sources())}
	if in.Node != nil {
		d.Node = in.Node.Name
	}
	switch {
	case in.Looked && (in.Node == nil || s.NodeUID != "" && in.Node.UID != s.NodeUID):
		d.Outcome, d.Reason = NodeGone, machinist.Reason(NodeGone)
		return s, d
	case !in.Looked || !in.Pods.Complete || d.Node == "":
		d.Reason, d.NextCheck = ReasonNotObserved, now.Add(p.pause())
		return s, d
	}
	s, allow := begin(s, &in, &p, now)
	budgets := newBudgetIndex(in.Budgets)
	forgetRefusals(s.Responses, &in, budgets)
	v := newView(s, &in, &p, &allow, now)
	cordon := gatesOf(v, &d)
	if cordon.observed {
		s = s.Cordoned(in.Node, p, now)
		v.s = s
	}
	pods, rows := selectPods(v)
	holdAll(rows, d.Gates)
	holdWaves(rows)
	volumes := volumesOf(v, pods, rows, before)
	room := volumes.room(v, pods, rows)
	if room == 0 { // their evictions must not use up budgets
		volumes.oneByOne(room, pods, rows)
	}
	spendBudgets(pods, rows, budgets, s.Responses, now)
	volumes.oneByOne(room, pods, rows)
	leave(rows, volumes.rows, allow.end, s.Responses)
	v.warn(rows, pods)
	s = s.waits(rows, now)
	s.Volumes = volumes.state
	d.Rows, d.Volumes, d.Started, d.GoneSoFar = rows, volumes.rows, s.Started, s.Gone
	conclude(&d, v, cordon.stands)
	return s, d
}

// begin sets the start times of the ladders, and returns what the reached rungs allow.
func begin(s State, in *Observation, p *Policy, now time.Time) (State, allowances) {
	s.NodeUID, s.Started = in.Node.UID, pastOrNow(s.Started, now)
	if s.UnreachableSince = pastOrNow(s.UnreachableSince, now); !in.Reachability.Unreachable {
		s.UnreachableSince = time.Time{}
	}
	start := p.EscalateFrom
	if start.IsZero() {
		start = s.Started
	}
	var allow allowances
	s.Reached = allow.escalate(p.Ladder, start, s.Reached, now)
	if s.UnreachableSince.IsZero() {
		s.UnreachableReached = nil
		return s, allow
	}
	since := in.Reachability.Since
	if !recorded.Known(since, now) {
		since = s.UnreachableSince
	}
	s.UnreachableReached = allow.escalate(p.UnreachableLadder, since, s.UnreachableReached, now)
	return s, allow
}

// gatesOf adds the gates of the drain: an invalid policy, and the cordon.
func gatesOf(v *view, d *Decision) cordoning {
	for _, err := range v.p.problems() {
		d.Gates = append(d.Gates, machinist.Hold{Subject: "policy", Reason: reasonInvalidPolicy, Message: err.Error()})
	}
	cordon := cordonOf(v, len(d.Gates) == 0)
	if cordon.gate != nil {
		d.Gates = append(d.Gates, *cordon.gate)
	}
	d.Cordon, d.Message = cordon.set, cordon.message
	return cordon
}

// conclude sets the outcome, or when to decide again.
func conclude(d *Decision, v *view, cordoned bool) {
	d.Rungs = v.allow.rungs
	for _, l := range []Ladder{v.p.Ladder, v.p.UnreachableLadder} {
		if l.Validate() == nil {
			d.Ladder = append(d.Ladder, l...)
		}
		if v.s.UnreachableSince.IsZero() {
			break
		}
	}
	if cordoned && !v.p.KeepSchedulable {
		d.CordonedAt = v.s.CordonedAt
	}
	waits, left := d.Cordon != nil || len(d.Gates) > 0, !cordoned
	for i := range d.Rows {
		row := &d.Rows[i]
		waits = waits || row.Action != Ignore
		left = left || row.Action == Ignore && row.Reason == ReasonAbandoned
		if row.Action != Ignore && v.allow.end == "" {
			row.Next, row.NextAt = v.allow.next, v.allow.nextAt
		}
	}
	for i := range d.Volumes {
		v := &d.Volumes[i]
		waits = waits || v.Action != Ignore
		left = left || v.Action == Ignore && v.Reason == ReasonAbandoned
	}
	switch {
	case waits && v.allow.end == GiveUp:
		d.Outcome = GaveUp
	case waits:
		d.Next, d.NextAt = v.allow.next, v.allow.nextAt
		d.NextCheck = nextCheck(d, v.now)
	case left:
		d.Outcome = Proceeded
	default:
		d.Outcome = Drained
	}
}

// nextCheck returns the earliest time that a hold waits for, after now.
func nextCheck(d *Decision, now time.Time) time.Time {
	var next time.Time
	consider := func(t time.Time) {
		if t.After(now) {
			next = machinist.Earliest(next, t)
		}
	}
	consider(d.NextAt)
	for i := range d.Rows {
		if d.Rows[i].Action != Ignore {
			consider(d.Rows[i].Until)
		}
	}
	for i := range d.Volumes {
		if d.Volumes[i].Action != Ignore {
			consider(d.Volumes[i].Until)
		}
	}
	for _, g := range d.Gates {
		consider(g.Until)
	}
	if d.Cordon != nil {
		consider(now.Add(retryEvery))
	}
	if next.IsZero() {
		return now.Add(lookAgain)
	}
	return next
}
