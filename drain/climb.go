// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// force is what the ladders allow now.
type force struct {
	leeway
	// fits are the rungs that come earlier for each pod, reached or not.
	fits []fit
	// rungs are those reached; next is the one to come.
	rungs  []Rung
	next   Escalation
	nextAt time.Time
	// fresh says that a rung is acted on for the first time: what was answered before
	// does not hold it up.
	fresh bool
}

// fit is a rung that comes as much earlier as the grace of a pod is long.
type fit struct {
	do  Escalation
	due time.Time
}

// leeway is what rungs allow.
type leeway struct {
	ignoreBudgets, ignoreProtection, forceDelete, skipTerminating bool
	// grace is the cap, or zero for none.
	grace time.Duration
	// due is when a pod must have stopped, or zero.
	due time.Time
	// end is Proceed, GiveUp or empty.
	end Escalation
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
	start = r.in.Reachability.Since
	if !recorded.Known(start, r.now) {
		start = r.s.UnreachableSince
	}
	r.s.UnreachableReached = r.climbOne(r.p.UnreachableLadder, start, r.s.UnreachableReached)
}

// climbOne notes the rungs of one ladder that are reached now.
func (r *round) climbOne(l Ladder, start time.Time, before []Reached) []Reached {
	if l.Validate() != nil {
		return nil
	}
	var reached []Reached
	for i, rung := range l {
		due := start.Add(rung.After)
		if rung.GraceFits {
			r.force.fits = append(r.force.fits, fit{do: rung.Action, due: due})
		}
		if len(reached) < i {
			continue // one below is still to come
		}
		if i > 0 && rung.patient() {
			due = latest(due, reached[i-1].At.Add(l.pause(i)))
		}
		if r.now.Before(due) {
			r.force.expect(rung.Action, due)
			continue
		}
		at, known := reachedAt(before, rung, r.now)
		reached = append(reached, Reached{Rung: rung, At: at})
		if !rung.IfOff || r.in.Reachability.State == PoweredOff {
			r.force.allow(rung)
			r.force.fresh = r.force.fresh || !known
		}
	}
	return reached
}

// pause is how long a rung comes after the one below it.
func (l Ladder) pause(i int) time.Duration {
	pause := l[i].After - l[i-1].After
	if l[i].Action.ends() {
		return max(pause, shortestGrace)
	}
	return pause
}

// reachedAt returns since when what a rung allows has been allowed. A policy may have
// moved the rung since, and a clock that was put back knows nothing of later times.
func reachedAt(before []Reached, rung Rung, now time.Time) (at time.Time, known bool) {
	for _, b := range before {
		if b.Rung.like(rung) && !b.At.After(now) {
			return b.At, true
		}
	}
	return now, false
}

// allow adds what a rung allows.
func (f *force) allow(rung Rung) {
	f.rungs = append(f.rungs, rung)
	switch rung.Action {
	case CapGrace:
		if f.grace == 0 || rung.Grace < f.grace {
			f.grace = rung.Grace
		}
	case SkipTerminating:
		f.skipTerminating = true
	case ForceDeletePods:
		f.ignoreBudgets, f.forceDelete = true, true
	case Proceed, GiveUp:
		if f.end != Proceed {
			f.end = rung.Action
		}
	default:
		f.allowDeletion(rung.Action)
	}
}

// allowDeletion allows to delete pods.
func (a *leeway) allowDeletion(e Escalation) {
	a.ignoreBudgets = true
	a.ignoreProtection = a.ignoreProtection || e == IgnoreProtection
}

// expect notes the rung that comes next.
func (f *force) expect(e Escalation, at time.Time) {
	f.next, f.nextAt = sooner(f.next, f.nextAt, e, at)
}

// leewayFor returns what is allowed for one pod: also what would be too late for its
// grace if it came at its time.
func (r *round) leewayFor(pod *corev1.Pod) leeway {
	a := r.force.leeway
	for _, f := range r.force.fits {
		if f.due.Sub(r.now) <= r.ownGrace(pod) {
			a.allowDeletion(f.do)
			a.due = machinist.Earliest(a.due, f.due)
		}
	}
	return a
}

// nextFor returns what one pod escalates to, and when.
func (r *round) nextFor(pod *corev1.Pod) (Escalation, time.Time) {
	next, at := r.force.next, r.force.nextAt
	for _, f := range r.force.fits {
		if early := f.due.Add(-r.ownGrace(pod)); early.After(r.now) {
			next, at = sooner(next, at, f.do, early)
		}
	}
	return next, at
}

// sooner returns the escalation that comes first; a zero time is none.
func sooner(a Escalation, at time.Time, b Escalation, bt time.Time) (Escalation, time.Time) {
	if at.IsZero() || bt.Before(at) {
		return b, bt
	}
	return a, at
}
