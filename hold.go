// SPDX-License-Identifier: Apache-2.0

package machinist

import (
	"fmt"
	"time"
)

// Reason is a stable CamelCase word that says why something is done, is not done, or
// has happened. The packages document the words that they use. Texts for people go
// into a message.
type Reason string

// Hold is one thing that a decision does not do yet, and why. The zero Hold names
// nothing.
type Hold struct {
	// Subject names the object that is waited for, such as "machine a" or
	// "pod/shop/web-1".
	Subject string `json:"subject"`
	// Reason is why.
	Reason Reason `json:"reason"`
	// Message is why, for people. Its text may change.
	Message string `json:"message,omitempty"`
	// Since is when the wait began. Zero means that the decision does not remember it.
	Since time.Time `json:"since,omitzero"`
	// Until is when to decide again. Zero means when Subject changes.
	Until time.Time `json:"until,omitzero"`
}

// String returns the hold in one line, without its times, so that the same hold has the
// same text in every decision.
func (h Hold) String() string {
	if h.Message == "" {
		return fmt.Sprintf("%s: %s", h.Subject, h.Reason)
	}
	return fmt.Sprintf("%s: %s: %s", h.Subject, h.Reason, h.Message)
}

// Event is a Kubernetes Event to report.
type Event struct {
	// Subject names the object, such as "machineclass/shop/small". Empty means the object that the
	// decision is about.
	Subject string `json:"subject,omitempty"`
	// Type is "Normal" or "Warning".
	Type string `json:"type"`
	// Reason is why.
	Reason Reason `json:"reason"`
	// Message is for people. Its text may change.
	Message string `json:"message"`
}

// String returns the event in one line, in the form of client-go's FakeRecorder.
func (e Event) String() string { return fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Message) }

// Earliest returns the earliest of the times that are not zero. It returns zero if all
// are zero.
func Earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
