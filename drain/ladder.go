// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"
)

// Escalation is what a [Rung] allows.
type Escalation string

// The escalations. What a rung allows stays allowed on the rungs above it.
const (
	// CapGrace gives pods at most the grace of the rung, also those that are on
	// their way out. Budgets are asked as before.
	CapGrace Escalation = "CapGrace"
	// SkipTerminating stops waiting for pods a second after they were to stop.
	SkipTerminating Escalation = "SkipTerminating"
	// IgnoreBudgets deletes pods instead of evicting them, with their own grace.
	// Waves are not waited for any more.
	IgnoreBudgets Escalation = "IgnoreBudgets"
	// IgnoreProtection also deletes the pods that the policy or a rule protects:
	// unmanaged ones, those with local data, those that should complete.
	IgnoreProtection Escalation = "IgnoreProtection"
	// ForceDeletePods takes pods off the API at once, whether they run or not.
	ForceDeletePods Escalation = "ForceDeletePods"
	// Proceed ends the drain with pods left: its outcome is [Proceeded].
	Proceed Escalation = "Proceed"
	// GiveUp ends the drain with pods left: its outcome is [GaveUp].
	GiveUp Escalation = "GiveUp"
)

// ends says whether the escalation is the end of a drain.
func (e Escalation) ends() bool { return e == Proceed || e == GiveUp }

// Rung is one step of a [Ladder].
type Rung struct {
	// After is how long after the anchor the rung is reached.
	After time.Duration `json:"after,omitempty"`
	// Action is what is allowed from then on.
	Action Escalation `json:"action"`
	// Grace is what a [CapGrace] leaves, at least a second.
	Grace time.Duration `json:"grace,omitempty"`
	// GraceFits reaches an [IgnoreBudgets] or [IgnoreProtection] for each pod so
	// early that its own grace ends when the rung is due; a pod that is late gets
	// what is left, at least a second.
	GraceFits bool `json:"graceFits,omitempty"`
	// IfOff lets a [ForceDeletePods] have no effect while the instance is not known
	// to be off. The rungs above it do not wait for that.
	IfOff bool `json:"ifOff,omitempty"`
}

// String returns the rung in a few words.
func (r Rung) String() string {
	s := fmt.Sprintf("after %s %s", r.After, r.Action)
	if r.Action == CapGrace {
		s += " " + r.Grace.String()
	}
	if r.GraceFits {
		s += " (grace fits)"
	}
	if r.IfOff {
		s += " (if off)"
	}
	return s
}

// like says whether two rungs are the same but for their time.
func (r Rung) like(other Rung) bool {
	r.After = other.After
	return r == other
}

// patient says whether a rung that comes late waits until the one below it has had
// its time: what it does cannot be taken back.
func (r Rung) patient() bool { return r.Action.ends() || r.Action == ForceDeletePods && !r.IfOff }

// Ladder is how a drain escalates, rung by rung. The empty Ladder never does.
//
// A rung is reached at its time after the anchor, or in the first step after that.
// Only what cannot be taken back, a [ForceDeletePods] or the end, waits if it comes
// late: it is reached as long after the rung below it as the ladder says, counted
// from when that was reached, and an end at least a second after it. So what a
// ladder allows is tried before it ends, also if nobody looked for hours. When that was
// is part of [State]: a caller who loses it more often than two such rungs are apart
// does not get to the end, and keeps it in a durable place.
type Ladder []Rung

// LadderError says what is wrong with a rung.
type LadderError struct {
	// Rung is its index.
	Rung int
	// Problem in words.
	Problem string
}

// Error returns the rung and what is wrong with it.
func (e *LadderError) Error() string { return fmt.Sprintf("drain: rung %d: %s", e.Rung, e.Problem) }

// Validate says what is wrong with the ladder, as a *[LadderError], or nil. A ladder
// goes up: no rung is before the one below it, leaves more grace, or is above the
// end. A drain with a ladder that is not valid does nothing but say so.
func (l Ladder) Validate() error {
	lowest := time.Duration(-1)
	for i, rung := range l {
		problem := rung.problem()
		switch {
		case problem != "":
		case i > 0 && rung.After < l[i-1].After:
			problem = "it comes before the rung below it"
		case i > 0 && l[i-1].Action.ends():
			problem = "it is above the end"
		case rung.Action == CapGrace && lowest >= 0 && rung.Grace > lowest:
			problem = "it leaves more grace than a rung below it"
		}
		if problem != "" {
			return &LadderError{Rung: i, Problem: problem}
		}
		if rung.Action == CapGrace {
			lowest = rung.Grace
		}
	}
	return nil
}

// problem says what is wrong with a rung on its own.
func (r Rung) problem() string {
	switch r.Action {
	case CapGrace, SkipTerminating, IgnoreBudgets, IgnoreProtection, ForceDeletePods, Proceed, GiveUp:
	default:
		return fmt.Sprintf("what is %q?", string(r.Action))
	}
	switch {
	case r.After < 0:
		return "it is before the anchor"
	case r.Action == CapGrace && r.Grace < shortestGrace:
		return "it leaves less than a second of grace"
	case r.Action != CapGrace && r.Grace != 0:
		return "it has a grace and caps none"
	case r.GraceFits && r.Action != IgnoreBudgets && r.Action != IgnoreProtection:
		return "it deletes nothing whose grace could fit"
	case r.IfOff && r.Action != ForceDeletePods:
		return "it does not depend on whether the instance is off"
	default:
		return ""
	}
}

// Anchor is what a deadline is counted from.
type Anchor struct {
	// Name says what it is, such as deletionTimestamp.
	Name string
	// At is its time. Zero means the first step of the drain, as the [State] has it.
	At time.Time
}

// Reached is when a rung of a ladder was first acted on.
type Reached struct {
	// Rung as it was.
	Rung Rung `json:"rung"`
	// At is when.
	At time.Time `json:"at"`
}
