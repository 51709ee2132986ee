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

// Rung is one step of a [Ladder].
type Rung struct {
	// After is how long after the anchor the rung is reached.
	After time.Duration
	// Do is what is allowed from then on.
	Do Escalation
	// Grace is what a [CapGrace] leaves, at least a second.
	Grace time.Duration
	// GraceFits reaches an [IgnoreBudgets] or [IgnoreProtection] for each pod so
	// early that its own grace ends when the rung is due; a pod that is late gets
	// what is left, at least a second.
	GraceFits bool
	// IfOff reaches a [ForceDeletePods] only once the instance is known to be off.
	IfOff bool
}

// String returns the rung in a few words.
func (r Rung) String() string {
	s := fmt.Sprintf("after %s %s", r.After, r.Do)
	if r.Do == CapGrace {
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

// Ladder is how a drain escalates, rung by rung. The empty Ladder never does.
//
// No rung is skipped: one that was reached late, since nobody looked, puts those
// above it off by as much, so that what a rung allows is tried before the next one
// counts.
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

// Anchor is what a deadline is counted from.
type Anchor struct {
	// Name says what it is, such as deletionTimestamp.
	Name string
	// At is its time. Zero means the first step of the drain.
	At time.Time
}

// Reached is when a rung of a ladder was first acted on.
type Reached struct {
	// Rung as it was.
	Rung Rung
	// At is when.
	At time.Time
}
