// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// NextChange returns the time of the next change in the cloud: a VM becomes ready, or an object
// ceases to exist. Zero means never.
func (c *Cloud) NextChange() time.Time {
	c.lock()
	defer c.unlock()
	return c.due
}

// catchUp applies the changes since the previous call.
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

// changesOf returns the new events of a VM.
func (c *Cloud) changesOf(v *vm) (events []Event) {
	if !v.booted && v.DeletedAt.IsZero() && !c.now.Before(v.ReadyAt) {
		v.booted = true
		events = append(events, Event{Time: v.ReadyAt, Kind: VMReady, VM: v.seen(v.ReadyAt)})
	}
	if !v.gone && !exists(v.GoneAt, c.now) {
		v.gone = true
		events = append(events, Event{Time: v.GoneAt, Kind: VMDeleted, VM: v.seen(v.GoneAt)})
		for _, s := range c.sidesOf(v.owner(), v.ProviderID) {
			s.ProviderID = "" // it has no VM now
		}
	}
	return events
}

// forget deletes the records of objects that are no longer visible.
func (c *Cloud) forget() {
	lag := max(0, c.options.Lag)
	c.vms = slices.DeleteFunc(c.vms, func(v *vm) bool {
		return v.gone && !c.now.Before(v.GoneAt.Add(lag))
	})
	c.sides = slices.DeleteFunc(c.sides, func(s *side) bool {
		return !exists(s.goneAt, c.now) && !c.now.Before(s.goneAt.Add(lag))
	})
}

// reschedule computes the time of the next change.
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

// schedule sets the time of the next change if it is earlier. Zero means none.
func (c *Cloud) schedule(at time.Time) {
	if !at.IsZero() && (c.due.IsZero() || at.Before(c.due)) {
		c.due = at
	}
}
