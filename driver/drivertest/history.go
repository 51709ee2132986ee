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
	// VMCreated means that a VM was made.
	VMCreated EventKind = iota + 1
	// VMReady means that a VM is ready.
	VMReady
	// VMDeletionBegan means that the deletion of a VM has begun.
	VMDeletionBegan
	// VMDeleted means that a VM exists no more.
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
	// Time of the change. What happens by itself has the time when it happened,
	// not the time when it was noticed.
	Time time.Time
	// Kind of change.
	Kind EventKind
	// VM as it was after the change.
	VM VM
}

// String renders the event on one line. Its form may change.
func (e Event) String() string {
	return fmt.Sprintf("%s %s: %s", e.Time.Format(time.TimeOnly), e.Kind, e.VM)
}

// A History is what happened in a [Cloud], in order.
type History []Event

// String renders the history, one line for each event.
func (h History) String() string {
	var b strings.Builder
	for _, e := range h {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// MaxVMsOfOneMachine returns how many VMs of one machine were alive at the same
// time at most, and of which machine: the first one for which it was so many. A VM
// is alive from being made until its deletion begins.
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

// History returns all that happened so far. The caller owns the result.
func (c *Cloud) History() History {
	c.lock()
	defer c.unlock()
	out := slices.Clone(c.history)
	for i := range out {
		out[i].VM.Addresses = slices.Clone(out[i].VM.Addresses)
	}
	return out
}

// Subscribe has f called with every event from now on, by the goroutine whose
// call noticed the event, and outside of all locks: f may call the cloud. What
// happens by itself is noticed at the next call of any method; to be told in
// time, call one when [Cloud.NextChange] or [VM].ReadyAt says. With several
// goroutines at work events may arrive out of order, see [Event].Seq, and f must
// be safe for use by all of them. The result ends the subscription; a nil f
// makes none.
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

// tell records an event. Its time is the present unless it has one.
func (c *Cloud) tell(e Event) {
	e.Seq = len(c.history) + 1
	if e.Time.IsZero() {
		e.Time = c.now
	}
	c.history = append(c.history, e)
	c.undelivered = append(c.undelivered, e)
}
