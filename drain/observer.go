// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// EventType is what happened in a drain.
type EventType string

// The types of events.
const (
	// EventStarted: the first round was planned.
	EventStarted EventType = "Started"
	// EventFenced: the Node was fenced, or Err says why not.
	EventFenced EventType = "Fenced"
	// EventRequested: a pod was asked to go; Err says if the API server refused.
	EventRequested EventType = "Requested"
	// EventWaiting: a pod, volume or gate is waited for, with a new reason.
	EventWaiting EventType = "Waiting"
	// EventGone: a pod that was waited for has gone.
	EventGone EventType = "Gone"
	// EventDetached: a volume that was waited for is detached.
	EventDetached EventType = "Detached"
	// EventEscalated: a rung of the ladder was reached.
	EventEscalated EventType = "Escalated"
	// EventEnded: the drain is over; the outcome says how.
	EventEnded EventType = "Ended"
)

// Event is one step of the progress of a drain.
type Event struct {
	// Type of the event.
	Type EventType
	// Time of the round in which it was noticed.
	Time time.Time
	// Node that is drained.
	Node string
	// Subject names what the event is about, such as pod/shop/web-1.
	Subject string
	// Reason is why, as a stable word.
	Reason Reason
	// Message is why, in words for people; it may change.
	Message string
	// Row is that of the pod, if the event is about one.
	Row *Row
	// Outcome of a drain that ended.
	Outcome Outcome
	// Err is what the API server said, or nil.
	Err error
}

// Observer is told of the progress of drains. It is called from the goroutine that
// calls the [Executor], one event after the other, and holds the drain up as long as
// it takes.
type Observer interface {
	Observe(e Event)
}
