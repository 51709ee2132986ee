// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The version and kind of a [Document].
const (
	APIVersion = "rollout.machinist.dev/v1alpha1"
	Kind       = "Rollout"
)

// An Outcome says how a roll-out ended.
type Outcome string

const (
	// OutcomeComplete says that all machines are of the new set and available.
	OutcomeComplete Outcome = "Complete"
	// OutcomeStopped says that it is not complete, and nothing happens any more.
	OutcomeStopped Outcome = "Stopped"
	// OutcomeUnfinished says that it was still going on when the time was over.
	OutcomeUnfinished Outcome = "Unfinished"
)

// Document is a roll-out that was played, as it is printed for programs. Fields may be added to
// a version, and are neither renamed nor removed.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Deployment is the name of the deployment, Strategy that of its strategy.
	Deployment string `json:"deployment"`
	Strategy   string `json:"strategy"`
	// Change is what the roll-out is about, for people.
	Change string `json:"change"`
	// Outcome is how it ended, Reason that of the last decision.
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason"`
	// Holds are what was not done in the end, and why.
	Holds   []Hold  `json:"holds,omitempty"`
	Summary Summary `json:"summary"`
	// Frames are the instants at which something changed, the first being that before the
	// change.
	Frames []Frame `json:"frames"`
}

// Summary is a roll-out in numbers.
type Summary struct {
	// Duration is how long it took, until the last change.
	Duration metav1.Duration `json:"duration"`
	// Decisions is how often the deployment was decided about.
	Decisions int `json:"decisions"`
	// Created and Gone are machines that came into being and that left.
	Created int `json:"created"`
	Gone    int `json:"gone"`
	// MostAboveCap is how many machines there were above the cap at worst, and MostBelowFloor
	// how many available ones were missing; both are negative or zero as long as the bounds
	// are kept.
	MostAboveCap   int `json:"mostAboveCap"`
	MostBelowFloor int `json:"mostBelowFloor"`
}

// Frame is a roll-out at an instant, after everybody had done what was to be done then.
type Frame struct {
	// After is how much time has passed since the change.
	After metav1.Duration `json:"after"`
	// Before says that it is the frame before the change.
	Before bool `json:"before,omitempty"`
	// Wanted is how many machines are wanted; Floor how many have to be available, and Cap how
	// many may exist.
	Wanted int `json:"wanted"`
	Floor  int `json:"floor"`
	Cap    int `json:"cap"`
	// Available is how many machines are available, and Total how many there are, or are asked
	// for.
	Available int `json:"available"`
	Total     int `json:"total"`
	// Sets are the machine sets, oldest first.
	Sets []Set `json:"sets"`
	// Events are what was done from outside, Happened what happened to machines.
	Events   []string `json:"events,omitempty"`
	Happened []string `json:"happened,omitempty"`
	// Reason is that of the last decision.
	Reason string `json:"reason,omitempty"`
	// Done is what was done by the decisions, with the reasons.
	Done []string `json:"done,omitempty"`
	// Victims are the machines that were chosen to go, with what chose them.
	Victims []Victim `json:"victims,omitempty"`
	// Holds are what is not done, and why.
	Holds []Hold `json:"holds,omitempty"`
}

// Set is a machine set in a [Frame].
type Set struct {
	Name string `json:"name"`
	// Class of its machines.
	Class string `json:"class"`
	// New says that its template is that of the deployment.
	New bool `json:"new,omitempty"`
	// Wanted is how many machines it has to have.
	Wanted int `json:"wanted"`
	// Machines are those that it has.
	Machines Machines `json:"machines"`
}

// Machines are numbers of machines. Each is in one of them.
type Machines struct {
	// Available ones, and those that run for less than minReadySeconds.
	Available int `json:"available,omitempty"`
	Settling  int `json:"settling,omitempty"`
	// Updating ones are updated in place, or just were.
	Updating int `json:"updating,omitempty"`
	// Joining ones are on their way to become available.
	Joining int `json:"joining,omitempty"`
	// Failed ones are to be replaced, or were not updated.
	Failed int `json:"failed,omitempty"`
	// Leaving ones are on their way out.
	Leaving int `json:"leaving,omitempty"`
}

// All returns how many machines these are.
func (m Machines) All() int {
	return m.Available + m.Settling + m.Updating + m.Joining + m.Failed + m.Leaving
}

// plus returns the sum of two.
func (m Machines) plus(o Machines) Machines {
	return Machines{
		Available: m.Available + o.Available, Settling: m.Settling + o.Settling, Updating: m.Updating + o.Updating,
		Joining: m.Joining + o.Joining, Failed: m.Failed + o.Failed, Leaving: m.Leaving + o.Leaving,
	}
}

// Victim is a machine that was chosen to go.
type Victim struct {
	Machine string `json:"machine"`
	// Set that it is of.
	Set string `json:"set"`
	// By is what chose it.
	By string `json:"by"`
}

// Hold is what is not done, and why.
type Hold struct {
	Subject string `json:"subject"`
	// Reason is a stable word; Message is for people.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Until is when it is looked at again, as time since the change; zero if a change will tell.
	Until metav1.Duration `json:"until,omitzero"`
}

// summarize returns the frames in numbers, created and gone apart.
func summarize(frames []Frame) Summary {
	var s Summary
	for i, f := range frames {
		above, below := f.Total-f.Cap, f.Floor-f.Available
		if i == 0 {
			s.MostAboveCap, s.MostBelowFloor = above, below
		}
		s.MostAboveCap, s.MostBelowFloor = max(s.MostAboveCap, above), max(s.MostBelowFloor, below)
		s.Duration.Duration = max(s.Duration.Duration, f.After.Duration)
	}
	return s
}

func offset(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// ending says in a sentence how the roll-out ended.
func (d Document) ending() string {
	after := span(d.Summary.Duration.Duration)
	switch d.Outcome {
	case OutcomeComplete:
		return "complete after " + after
	case OutcomeStopped:
		return "stopped after " + after + ": " + d.reasons()
	default:
		return "not over after " + after + ": " + d.reasons()
	}
}

// reasons are those of the last holds, each once, or else that of the last decision.
func (d Document) reasons() string {
	if len(d.Holds) == 0 {
		return d.Reason
	}
	return strings.Join(reasonsOf(d.Holds), ", ")
}

// why is what a frame waits for, in words of which each stands once; empty for nothing.
func (f Frame) why() string { return strings.Join(reasonsOf(f.Holds), ", ") }

func reasonsOf(holds []Hold) []string {
	var words []string
	for _, h := range holds {
		if !slices.Contains(words, h.Reason) {
			words = append(words, h.Reason)
		}
	}
	return words
}

// String returns the hold in one line.
func (h Hold) String() string {
	s := h.Subject + ": " + h.Reason + ": " + h.Message
	if h.Until.Duration != 0 {
		s += " (until " + span(h.Until.Duration) + ")"
	}
	return s
}
