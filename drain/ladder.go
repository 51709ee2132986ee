// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// Escalation is what a [Rung] allows.
type Escalation string

// Escalations. What a rung allows stays allowed.
const (
	// IgnoreBudgets deletes pods instead of evicting them, in all waves at once.
	IgnoreBudgets Escalation = "IgnoreBudgets"
	// ForceDeletePods deletes pods from the API at once, whether they run or not.
	ForceDeletePods Escalation = "ForceDeletePods"
	// Proceed ends the drain with pods left: its outcome is [Proceeded].
	Proceed Escalation = "Proceed"
	// GiveUp ends the drain with pods left: its outcome is [GaveUp].
	GiveUp Escalation = "GiveUp"
)

// escalations is the table of escalations.
var escalations = map[Escalation]struct {
	// allow adds what the escalation allows.
	allow func(a *allowances)
	// patient means that the escalation cannot be undone: a rung that comes late is reached as long
	// after the previous rung as the ladder says.
	patient bool
	// ends means that the escalation ends the drain.
	ends bool
	// removes are the reasons of waits that the escalation ends. Nil means none, [everyReason] all.
	removes []machinist.Reason
	// happens is what happens to a pod, as text.
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

// everyReason means all reasons.
var everyReason = []machinist.Reason{""}

// removes reports whether a rung ends the wait for a pod with this reason.
func (r Rung) removes(reason machinist.Reason) bool {
	removed := escalations[r.Action].removes
	return slices.Contains(removed, reason) || slices.Contains(removed, "")
}

// Rung is one step of a [Ladder].
type Rung struct {
	// After is the time from the start of the ladder to the rung.
	After time.Duration `json:"after,omitempty"`
	// Action is what is allowed from then on.
	Action Escalation `json:"action"`
	// Grace is the longest grace period from then on, at least a second, also for terminating pods.
	// Zero means that of the pod.
	Grace time.Duration `json:"grace,omitempty"`
}

// String returns the rung as text.
func (r Rung) String() string {
	s := fmt.Sprintf("after %s %s", r.After, r.Action)
	if r.Grace > 0 {
		s += fmt.Sprintf(" (grace %s)", r.Grace)
	}
	return s
}

// like reports whether two rungs differ at most in their time.
func (r Rung) like(other Rung) bool { return r.Action == other.Action && r.Grace == other.Grace }

// Ladder is how a drain escalates. The empty Ladder never does.
//
// A rung is reached at its time, or in the first step after it. A [ForceDeletePods] or an end cannot
// be undone, so it also keeps its distance from the time at which the previous rung was reached. An
// end is at least a second later. The times are in [State]: store it, or the last rungs may never be
// reached.
type Ladder []Rung

// Validate returns why the ladder is invalid, or nil. No rung may be earlier than the previous one,
// have a longer grace period, or come after the end.
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
			problem = "its grace period is less than a second"
		case i > 0 && rung.After < l[i-1].After:
			problem = "it is earlier than the previous rung"
		case i > 0 && escalations[l[i-1].Action].ends:
			problem = "it comes after the end of the drain"
		case grace > 0 && rung.Grace > grace:
			problem = "its grace period is longer than that of an earlier rung"
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

// reachedRung is when a rung was first acted on.
type reachedRung struct {
	// Rung is the rung.
	Rung Rung `json:"rung"`
	// At is the time.
	At time.Time `json:"at"`
}

// allowances are what the reached rungs allow.
type allowances struct {
	ignoreBudgets, forceDelete bool
	// grace is the longest grace, or zero for any.
	grace time.Duration
	// end is the escalation that ended the drain, or empty.
	end Escalation
	// forced is the escalation that allows deletions, or empty.
	forced Escalation
	// rungs are the reached rungs. next is the escalation of the next rung, nextAt its time.
	rungs  []Rung
	next   Escalation
	nextAt time.Time
	// fresh means that a rung is acted on for the first time. Earlier responses do not delay it.
	fresh bool
}

// escalate adds what the rungs of a ladder allow, and returns the reached rungs. start is when the
// ladder starts.
func (a *allowances) escalate(l Ladder, start time.Time, before []reachedRung, now time.Time) []reachedRung {
	if l.Validate() != nil {
		return nil
	}
	var reached []reachedRung
	for i, rung := range l {
		due := start.Add(rung.After)
		if i > 0 && escalations[rung.Action].patient {
			if earliest := reached[i-1].At.Add(l.pause(i)); due.Before(earliest) {
				due = earliest
			}
		}
		if now.Before(due) {
			if a.nextAt.IsZero() || due.Before(a.nextAt) {
				a.next, a.nextAt = rung.Action, due
			}
			return reached
		}
		at, known := reachedAt(before, rung, now)
		reached = append(reached, reachedRung{Rung: rung, At: at})
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
	if !escalations[rung.Action].ends && a.forced != ForceDeletePods { // the strongest
		a.forced = rung.Action
	}
}

// pause returns the time between a rung and the previous one.
func (l Ladder) pause(i int) time.Duration {
	pause := l[i].After - l[i-1].After
	if escalations[l[i].Action].ends {
		return max(pause, shortestGrace)
	}
	return pause
}

// reachedAt returns when a rung was first acted on. The policy may have moved the rung since. Times
// in the future are ignored.
func reachedAt(before []reachedRung, rung Rung, now time.Time) (at time.Time, known bool) {
	for _, b := range before {
		if b.Rung.like(rung) && recorded.Known(b.At, now) {
			return b.At, true
		}
	}
	return now, false
}
