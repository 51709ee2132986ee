// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
)

// The version and kind of a [Document].
const (
	APIVersion = "rollout.machinist.dev/v1alpha1"
	Kind       = "Rollout"
)

// Outcome is how a rollout ended.
type Outcome string

const (
	// OutcomeComplete means that all machines are of the new set and available.
	OutcomeComplete Outcome = "Complete"
	// OutcomeStopped means that the rollout is not complete and nothing changes any more.
	OutcomeStopped Outcome = "Stopped"
	// OutcomeUnfinished means that the rollout was not over after the time of --for.
	OutcomeUnfinished Outcome = "Unfinished"
)

// Document is a simulated rollout, as -o json prints it. A version may get new fields; none is
// renamed or removed.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Deployment is the name of the deployment, and Strategy the type of its strategy.
	Deployment string `json:"deployment"`
	Strategy   string `json:"strategy"`
	// Change is what changes in the deployment, for people.
	Change string `json:"change"`
	// Start is the virtual time of the change. The times of decisions are virtual too.
	Start time.Time `json:"start"`
	// Outcome is how the rollout ended.
	Outcome Outcome `json:"outcome"`
	// Decision is the last decision.
	Decision deployment.Decision `json:"decision"`
	Summary  Summary             `json:"summary"`
	// Frames are the times at which something changed. The first is before the change.
	Frames []Frame `json:"frames"`
}

// Summary is a rollout in numbers.
type Summary struct {
	// Duration is the time from the change until nothing changed any more.
	Duration metav1.Duration `json:"duration"`
	// Decisions is the number of decisions about the deployment.
	Decisions int `json:"decisions"`
	// Created and Gone are the numbers of machines that were created and removed.
	Created int `json:"created"`
	Gone    int `json:"gone"`
	// AboveMaximum is the number of machines above the maximum at the worst time. It is zero or
	// negative if the maximum was kept.
	AboveMaximum int `json:"aboveMaximum"`
	// Replacing is how many of AboveMaximum are failed machines that are being deleted while their
	// replacements exist.
	Replacing int `json:"replacing,omitempty"`
	// BelowMinimum is the number of available machines below the minimum at the worst time. It is
	// zero or negative if the minimum was kept.
	BelowMinimum int `json:"belowMinimum"`
}

// Frame is a rollout at one time, after all controllers have acted.
type Frame struct {
	// After is the time since the change.
	After metav1.Duration `json:"after"`
	// Before means that the frame is the one before the change.
	Before bool `json:"before,omitempty"`
	// Replicas is spec.replicas of the deployment. Minimum is the number of machines that have to be
	// available, and Maximum the number of machines that may exist.
	Replicas int `json:"replicas"`
	Minimum  int `json:"minimum"`
	Maximum  int `json:"maximum"`
	// Available is the number of available machines. Total is the number of machines that exist or
	// are still to be created.
	Available int `json:"available"`
	Total     int `json:"total"`
	// Replacing is the number of failed machines that are being deleted while their replacements exist.
	Replacing int `json:"replacing,omitempty"`
	// Sets are the machine sets, oldest first.
	Sets []Set `json:"sets"`
	// Events are the changes by users and the provider, MachineEvents the changes of machines.
	Events        []string `json:"events,omitempty"`
	MachineEvents []string `json:"machineEvents,omitempty"`
	// Decision is the last decision. It has the actions of all decisions at this time.
	Decision deployment.Decision `json:"decision"`
	// Deletions are the machines that sets delete.
	Deletions []Deletion `json:"deletions,omitempty"`
}

// Set is a machine set in a [Frame].
type Set struct {
	Name string `json:"name"`
	// Class is the class of its machines.
	Class string `json:"class"`
	// New means that its template is that of the deployment.
	New bool `json:"new,omitempty"`
	// Replicas is spec.replicas of the set.
	Replicas int      `json:"replicas"`
	Machines Machines `json:"machines"`
}

// Machines are the numbers of machines by state, without those that are zero. Each machine has one state:
// available; ready, and not available yet because of minReadySeconds; updating in place; pending, which is
// not ready yet; failed, which is to be replaced or whose update in place failed; or terminating.
type Machines map[string]int

// All returns the number of machines.
func (m Machines) All() (n int) {
	for _, some := range m {
		n += some
	}
	return n
}

// Deletion is a machine that its set deletes.
type Deletion struct {
	Machine string `json:"machine"`
	Set     string `json:"set"`
	// By is why this machine was chosen.
	By string `json:"by"`
}

// summarize returns the frames in numbers, without those that the provider counts.
func summarize(frames []Frame) Summary {
	s := Summary{AboveMaximum: math.MinInt, BelowMinimum: math.MinInt}
	for _, f := range frames {
		above, below := f.Total-f.Maximum, f.Minimum-f.Available
		if above > s.AboveMaximum {
			s.Replacing = min(above, f.Replacing)
		}
		s.AboveMaximum, s.BelowMinimum = max(s.AboveMaximum, above), max(s.BelowMinimum, below)
		s.Duration.Duration = max(s.Duration.Duration, f.After.Duration)
	}
	return s
}

func offset(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// ending returns in one line how the rollout ended.
func (d Document) ending() string {
	after := span(d.Summary.Duration.Duration)
	switch d.Outcome {
	case OutcomeComplete:
		return "complete after " + after
	case OutcomeStopped:
		return "stopped after " + after + ": " + d.why()
	default:
		return "not over after " + after + ": " + d.why()
	}
}

// bounds returns in one line how close the rollout came to its bounds.
func (d Document) bounds() string {
	s := d.Summary
	most := margin(s.AboveMaximum)
	switch {
	case s.AboveMaximum <= 0 || s.Replacing == 0:
	case s.AboveMaximum == s.Replacing:
		most = fmt.Sprintf("exceeded by %d, by failed machines that are deleted while their replacements exist", s.AboveMaximum)
	default:
		most = fmt.Sprintf("violated by %d, of which %d are failed machines whose replacements exist", s.AboveMaximum, s.Replacing)
	}
	return "maximum of all machines: " + most + "; minimum of available machines: " + margin(s.BelowMinimum)
}

// why returns the reason of the last decision, and those of its holds in words.
func (d Document) why() string {
	text := string(d.Decision.Reason)
	reasons := slices.DeleteFunc(reasonsOf(d.Decision.Holds), func(r string) bool { return r == words(d.Decision.Reason) })
	if len(reasons) > 0 {
		text += " (" + strings.Join(reasons, ", ") + ")"
	}
	return text
}

// reasonsOf returns the reasons of holds in words, each once.
func reasonsOf(holds []machinist.Hold) []string {
	var out []string
	for _, h := range holds {
		if w := words(h.Reason); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// words returns a reason in lower-case words: "surge used up" for "SurgeUsedUp".
func words(r machinist.Reason) string {
	var b strings.Builder
	for i, c := range string(r) {
		if i > 0 && unicode.IsUpper(c) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
