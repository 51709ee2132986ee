// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
)

// ProgressType is what happened in a drain.
type ProgressType string

// The types of events.
const (
	// ProgressStarted: the first round was planned.
	ProgressStarted ProgressType = "Started"
	// ProgressFenced: the Node was fenced, or Err says why not.
	ProgressFenced ProgressType = "Fenced"
	// ProgressUnfenced: the fence was taken back by an [Executor.Abort], or Err says why
	// not.
	ProgressUnfenced ProgressType = "Unfenced"
	// ProgressRequested: a pod was asked to go; Err says if the API server refused.
	ProgressRequested ProgressType = "Requested"
	// ProgressWaiting: a pod, volume or gate is waited for, with a new reason.
	ProgressWaiting ProgressType = "Waiting"
	// ProgressGone: a pod that was waited for has gone, or runs no more.
	ProgressGone ProgressType = "Gone"
	// ProgressDetached: a volume that was waited for is not attached to the Node any more.
	ProgressDetached ProgressType = "Detached"
	// ProgressReattached: a volume that was to be attached elsewhere is, or need not be any
	// more.
	ProgressReattached ProgressType = "Reattached"
	// ProgressLeft: a pod or volume that was waited for is not any more, and has not gone.
	ProgressLeft ProgressType = "Left"
	// ProgressEscalated: a rung of the ladder was reached.
	ProgressEscalated ProgressType = "Escalated"
	// ProgressEnded: the drain is over; the outcome says how.
	ProgressEnded ProgressType = "Ended"
)

// Progress is one step of the progress of a drain.
type Progress struct {
	// Type of the event.
	Type ProgressType
	// Time of the round in which it was noticed; of a request, when it was made.
	Time time.Time
	// Node that is drained.
	Node string
	// Started is when its drain began, if it has.
	Started time.Time
	// Subject names what the event is about, such as pod/shop/web-1.
	Subject string
	// Reason is why, as a stable word.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Row is that of the pod, if the event is about one: the last that there was of a
	// pod that has gone, and of one that was asked to go the one that was carried out.
	Row *Row
	// Rung that was reached, if the event is about one.
	Rung *Rung
	// Outcome of a drain that ended.
	Outcome Outcome
	// Err is what the API server said, or nil.
	Err error
}

// String returns the event in one line, without its time and its Node.
func (e Progress) String() string {
	var b strings.Builder
	b.WriteString(string(e.Type))
	if e.Subject != "" {
		b.WriteString(" " + e.Subject)
	}
	if e.Type == ProgressRequested && e.Row != nil {
		b.WriteString(" to " + string(e.Row.Verdict))
	}
	switch {
	case e.Outcome != "" && (e.Reason == "" || string(e.Reason) == string(e.Outcome)):
		fmt.Fprintf(&b, " (%s)", e.Outcome)
	case e.Outcome != "":
		fmt.Fprintf(&b, " (%s, %s)", e.Outcome, e.Reason)
	case e.Reason != "":
		fmt.Fprintf(&b, " (%s)", e.Reason)
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}
