// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An EventKind is a kind of change in a [Cloud].
type EventKind uint8

// The kinds of change.
const (
	// VMCreated means that a VM was created.
	VMCreated EventKind = iota + 1
	// VMReady means that a VM is ready.
	VMReady
	// VMDeletionBegan means that the deletion of a VM has begun.
	VMDeletionBegan
	// VMDeleted means that a VM ceased to exist.
	VMDeleted
)

// String returns the name of the kind, such as "VMCreated".
func (k EventKind) String() string {
	names := []string{"", "VMCreated", "VMReady", "VMDeletionBegan", "VMDeleted"}
	if k == 0 || int(k) >= len(names) {
		return fmt.Sprintf("EventKind(%d)", uint8(k))
	}
	return names[k]
}

// An Event is one change in a [Cloud].
type Event struct {
	// Seq counts the events of a cloud from 1.
	Seq int
	// Time of the change.
	Time time.Time
	// Kind of change.
	Kind EventKind
	// VM after the change.
	VM VM
}

// String returns the event in one line. Its form may change.
func (e Event) String() string {
	return fmt.Sprintf("%s %s: %s", e.Time.Format(time.TimeOnly), e.Kind, e.VM)
}

// A History has the events of a [Cloud] in their order.
type History []Event

// String returns the history with one line for each event.
func (h History) String() string {
	var b strings.Builder
	for _, e := range h {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// MaxVMsOfOneMachine returns the largest number of VMs that one machine had at the same time,
// and the first such machine. A VM counts from its creation until its deletion begins.
func (h History) MaxVMsOfOneMachine() (most int, machine string) {
	alive := map[owner]map[string]bool{}
	for _, e := range h {
		o := owner{scope: e.VM.Scope, machine: e.VM.Machine}
		switch e.Kind { //nolint:exhaustive // VMReady changes no number of VMs
		case VMCreated:
			if alive[o] == nil {
				alive[o] = map[string]bool{}
			}
			alive[o][e.VM.ProviderID] = true
		case VMDeletionBegan, VMDeleted:
			delete(alive[o], e.VM.ProviderID)
		}
		if n := len(alive[o]); n > most {
			most, machine = n, e.VM.Machine
		}
	}
	return most, machine
}

// History returns all events so far. The caller owns the result.
func (c *Cloud) History() History {
	c.lock()
	defer c.unlock()
	out := slices.Clone(c.history)
	for i := range out {
		out[i].VM.Addresses = slices.Clone(out[i].VM.Addresses)
	}
	return out
}

// Subscribe calls f with every event from now on. f runs without locks in the goroutine of the
// call that finds the event, and may call the cloud. A change is found by the next call of
// any method; [Cloud.NextChange] returns its time. With several goroutines, events may arrive
// out of order, see [Event].Seq, and f must be safe for use by multiple goroutines. The result
// ends the subscription. A nil f does nothing.
func (c *Cloud) Subscribe(f func(Event)) (cancel func()) {
	if f == nil {
		return func() {}
	}
	c.lock()
	defer c.unlock()
	p := &f
	c.subscribers = append(slices.Clone(c.subscribers), p)
	return func() {
		c.lock()
		defer c.unlock()
		c.subscribers = slices.DeleteFunc(slices.Clone(c.subscribers), func(q *func(Event)) bool { return p == q })
	}
}

// tell records an event. A zero time means now.
func (c *Cloud) tell(e Event) {
	e.Seq = len(c.history) + 1
	if e.Time.IsZero() {
		e.Time = c.now
	}
	c.history = append(c.history, e)
	c.undelivered = append(c.undelivered, e)
}
