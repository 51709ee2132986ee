// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// Escalation is what a [Rung] allows.
type Escalation string

// The escalations. What a rung allows stays allowed on the rungs above it.
const (
	// IgnoreBudgets deletes pods instead of evicting them. Waves are not waited for any more.
	IgnoreBudgets Escalation = "IgnoreBudgets"
	// ForceDeletePods takes pods off the API at once, whether they run or not.
	ForceDeletePods Escalation = "ForceDeletePods"
	// Proceed ends the drain with pods left: its outcome is [Proceeded].
	Proceed Escalation = "Proceed"
	// GiveUp ends the drain with pods left: its outcome is [GaveUp].
	GiveUp Escalation = "GiveUp"
)

// escalations is the table of what a rung can do. A new escalation is one entry.
var escalations = map[Escalation]struct {
	// allow adds what the escalation allows.
	allow func(a *allowances)
	// patient says that a rung that comes late waits until the rung below it has had its
	// time, since the escalation cannot be taken back.
	patient bool
	// ends says that the escalation is the end of the drain.
	ends bool
	// removes are the reasons of waiting pods that the escalation overrules. Nil means none,
	// [everyReason] means all of them.
	removes []machinist.Reason
	// happens says in words what happens to a pod.
	happens string
}{
	IgnoreBudgets: {
		allow:   func(a *allowances) { a.ignoreBudgets = true },
		removes: []machinist.Reason{ReasonBudgetNever, ReasonBudgets}, happens: "deleted",
	},
	ForceDeletePods: {
		allow:   func(a *allowances) { a.ignoreBudgets, a.forceDelete = true, true },
		patient: true, removes: []machinist.Reason{ReasonBudgetNever, ReasonBudgets}, happens: "force-deleted",
	},
	Proceed: {
		allow:   func(a *allowances) { a.end = Proceed },
		patient: true, ends: true, removes: everyReason, happens: "left behind",
	},
	GiveUp: {
		allow: func(a *allowances) {
			if a.end != Proceed {
				a.end = GiveUp
			}
		},
		patient: true, ends: true, happens: "given up",
	},
}

// everyReason stands for all reasons in the table.
var everyReason = []machinist.Reason{""}

// removes reports whether a rung does away with a reason for which a pod stays.
func (r Rung) removes(reason machinist.Reason) bool {
	for _, removed := range escalations[r.Action].removes {
		if removed == reason || removed == "" {
			return true
		}
	}
	return false
}

// Rung is one step of a [Ladder].
type Rung struct {
	// After is how long after the start of the ladder the rung is reached.
	After time.Duration `json:"after,omitempty"`
	// Action is what is allowed from then on.
	Action Escalation `json:"action"`
	// Grace is the longest grace of a pod from then on, at least a second, also of pods that
	// are terminating. Zero means the pod's own.
	Grace time.Duration `json:"grace,omitempty"`
}

// String returns the rung in a few words.
func (r Rung) String() string {
	s := fmt.Sprintf("after %s %s", r.After, r.Action)
	if r.Grace > 0 {
		s += fmt.Sprintf(" (grace %s)", r.Grace)
	}
	return s
}

// like reports whether two rungs are the same but for their time.
func (r Rung) like(other Rung) bool { return r.Action == other.Action && r.Grace == other.Grace }

// Ladder is how a drain escalates, rung by rung. The empty Ladder never does.
//
// A rung is reached at its time, or in the first step after that. Only what cannot be taken
// back, a [ForceDeletePods] or the end, waits if it comes late: it is reached as long after
// the rung below it as the ladder says, counted from when that was reached, and an end at
// least a second after it. So what a ladder allows is tried before it ends, also after hours
// without a step. The times are part of [State]. Persist it, or the last rungs may never be
// reached.
type Ladder []Rung

// Validate returns what is wrong with the ladder, or nil. A ladder goes up: no rung is before
// the one below it, leaves more grace, or is above the end.
func (l Ladder) Validate() error {
	var grace time.Duration
	for i, rung := range l {
		problem := ""
		_, known := escalations[rung.Action]
		switch {
		case !known:
			problem = fmt.Sprintf("the action %q is not known", string(rung.Action))
		case rung.After < 0:
			problem = "its time is negative"
		case rung.Grace != 0 && rung.Grace < shortestGrace:
			problem = "it leaves less than a second of grace"
		case i > 0 && rung.After < l[i-1].After:
			problem = "it comes before the rung below it"
		case i > 0 && escalations[l[i-1].Action].ends:
			problem = "it is above the end"
		case grace > 0 && rung.Grace > grace:
			problem = "it leaves more grace than a rung below it"
		}
		if problem != "" {
			return fmt.Errorf("drain: rung %d: %s", i, problem)
		}
		if rung.Grace > 0 {
			grace = rung.Grace
		}
	}
	return nil
}

// Reached is when a rung of a ladder was first acted on.
type Reached struct {
	// Rung as it was.
	Rung Rung `json:"rung"`
	// At is when.
	At time.Time `json:"at"`
}

// allowances are what the rungs that were reached allow.
type allowances struct {
	ignoreBudgets, forceDelete bool
	// grace is the longest grace, or zero for any.
	grace time.Duration
	// end is the escalation that ended the drain, or empty.
	end Escalation
	// forced is the escalation that allows deletions, or empty.
	forced Escalation
	// rungs are those reached; next is the one to come.
	rungs  []Rung
	next   Escalation
	nextAt time.Time
	// fresh says that a rung is acted on for the first time: what was answered before
	// does not hold it up.
	fresh bool
}

// escalate adds what a ladder allows that is counted from start. It returns the rungs that
// were reached, with when.
func (a *allowances) escalate(l Ladder, start time.Time, before []Reached, now time.Time) []Reached {
	if l.Validate() != nil {
		return nil
	}
	var reached []Reached
	for i, rung := range l {
		due := start.Add(rung.After)
		if i > 0 && escalations[rung.Action].patient {
			due = latest(due, reached[i-1].At.Add(l.pause(i)))
		}
		if now.Before(due) {
			if a.nextAt.IsZero() || due.Before(a.nextAt) {
				a.next, a.nextAt = rung.Action, due
			}
			return reached
		}
		at, known := reachedAt(before, rung, now)
		reached = append(reached, Reached{Rung: rung, At: at})
		a.add(rung)
		a.fresh = a.fresh || !known
	}
	return reached
}

// add adds what a rung allows.
func (a *allowances) add(rung Rung) {
	a.rungs = append(a.rungs, rung)
	escalations[rung.Action].allow(a)
	if rung.Grace > 0 && (a.grace == 0 || rung.Grace < a.grace) {
		a.grace = rung.Grace
	}
	if !escalations[rung.Action].ends {
		a.forced = rung.Action
	}
}

// pause returns how long a rung comes after the one below it.
func (l Ladder) pause(i int) time.Duration {
	pause := l[i].After - l[i-1].After
	if escalations[l[i].Action].ends {
		return max(pause, shortestGrace)
	}
	return pause
}

// reachedAt returns since when what a rung allows has been allowed. A policy may have
// moved the rung since, and a clock that was put back knows nothing of later times.
func reachedAt(before []Reached, rung Rung, now time.Time) (at time.Time, known bool) {
	for _, b := range before {
		if b.Rung.like(rung) && recorded.Known(b.At, now) {
			return b.At, true
		}
	}
	return now, false
}

// latest returns the later time.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
