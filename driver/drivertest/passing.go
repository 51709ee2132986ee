// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// NextChange returns when something will happen in the cloud by itself: a VM
// gets ready, or something ceases to exist. Zero means never.
func (c *Cloud) NextChange() time.Time {
	c.lock()
	defer c.unlock()
	return c.due
}

// catchUp does what the passing of time has done since the last call: VMs got
// ready, and things ceased to exist.
func (c *Cloud) catchUp() {
	if c.due.IsZero() || c.now.Before(c.due) {
		return
	}
	var events []Event
	for _, v := range c.vms {
		events = append(events, c.changesOf(v)...)
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Kind, b.Kind),
			strings.Compare(a.VM.ProviderID, b.VM.ProviderID))
	})
	for _, e := range events {
		c.tell(e)
	}
	c.forget()
	c.reschedule()
}

// changesOf returns what happened to a VM by itself and was not told yet.
func (c *Cloud) changesOf(v *vm) (events []Event) {
	if !v.booted && v.DeletedAt.IsZero() && !c.now.Before(v.ReadyAt) {
		v.booted = true
		events = append(events, Event{Time: v.ReadyAt, Kind: VMReady, VM: v.seen(v.ReadyAt)})
	}
	if !v.gone && !exists(v.GoneAt, c.now) {
		v.gone = true
		events = append(events, Event{Time: v.GoneAt, Kind: VMDeleted, VM: v.seen(v.GoneAt)})
		for _, s := range c.sidesOf(v.owner(), v.ProviderID) {
			s.ProviderID = "" // a leftover from now on
		}
	}
	return events
}

// forget strikes from the books what is gone and not even shown any more.
func (c *Cloud) forget() {
	lag := max(0, c.options.Lag)
	c.vms = slices.DeleteFunc(c.vms, func(v *vm) bool {
		return v.gone && !c.now.Before(v.GoneAt.Add(lag))
	})
	c.sides = slices.DeleteFunc(c.sides, func(s *side) bool {
		return !exists(s.goneAt, c.now) && !c.now.Before(s.goneAt.Add(lag))
	})
}

// reschedule works out when the next change by itself is due.
func (c *Cloud) reschedule() {
	c.due = time.Time{}
	for _, v := range c.vms {
		if !v.booted && v.DeletedAt.IsZero() {
			c.schedule(v.ReadyAt)
		}
		if !v.gone {
			c.schedule(v.GoneAt)
		}
	}
}

// schedule notes that a change by itself is due at a time; zero is none.
func (c *Cloud) schedule(at time.Time) {
	if !at.IsZero() && (c.due.IsZero() || at.Before(c.due)) {
		c.due = at
	}
}
