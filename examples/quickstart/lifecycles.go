// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// moment is a write to the control cluster. The zero moment means never.
type moment struct {
	n  int // the number of the write, from 1
	at time.Time
}

// never reports whether it did not happen.
func (m moment) never() bool { return m.n == 0 }

// before reports whether m happened before o. It is false if one of them did not happen.
func (m moment) before(o moment) bool { return m.n > 0 && m.n < o.n }

// lifecycle is the part of the lifecycle of a machine in a history: its creation, the first time of
// each phase, its preservation, the request to release it, the end of the preservation, its
// deletion, and its removal.
type lifecycle struct {
	name, node string
	created    time.Time

	made, running, unknown, failed, preserved, letGo, released, deleted, gone moment

	until time.Time // the end of the preservation
	why   string    // the reason of the failure
}

// version returns the resource version of the last write to the control cluster.
func (w *world) version() string { return w.control.ResourceVersion() }

// lifecyclesSince returns the lifecycles of the machines with a write since a version of the
// control cluster, in the order of these writes.
func lifecyclesSince(w *world, version string) []*lifecycle {
	return lifecyclesIn(w.control.HistorySince(version))
}

// lifecyclesIn returns the lifecycles of the machines in a history.
func lifecyclesIn(history []draintest.Write) []*lifecycle {
	var lifecycles []*lifecycle
	known := map[string]*lifecycle{}
	for i, write := range history {
		before, _ := write.Before.(*v1alpha1.Machine)
		after, _ := write.After.(*v1alpha1.Machine)
		if before == nil && after == nil {
			continue
		}
		l := known[write.Name]
		if l == nil {
			l = &lifecycle{name: write.Name}
			known[write.Name], lifecycles = l, append(lifecycles, l)
		}
		l.read(before, after, moment{i + 1, write.Time})
	}
	return lifecycles
}

// read adds a write to a lifecycle. Before is nil for a new machine, after for a removed one.
func (l *lifecycle) read(before, after *v1alpha1.Machine, now moment) {
	first := func(m *moment, happened bool) {
		if m.never() && happened {
			*m = now
		}
	}
	if first(&l.gone, after == nil); after == nil {
		return
	}
	first(&l.made, before == nil)
	if before == nil {
		before = &v1alpha1.Machine{}
	}
	l.node, l.created = after.Labels[v1alpha1.NodeLabelKey], after.CreationTimestamp.Time
	was, is := before.Status.CurrentStatus, after.Status.CurrentStatus
	first(&l.deleted, after.DeletionTimestamp != nil)
	first(&l.running, is.Phase == v1alpha1.MachineRunning && was.Phase != is.Phase)
	first(&l.unknown, is.Phase == v1alpha1.MachineUnknown && was.Phase != is.Phase)
	if is.Phase == v1alpha1.MachineFailed && l.failed.never() {
		l.failed, l.why = now, after.Status.LastOperation.Description
	}
	if end := is.PreserveExpiryTime; end != nil {
		l.until = end.Time
	}
	first(&l.letGo, after.Annotations[v1alpha1.PreserveMachineAnnotationKey] == v1alpha1.PreserveMachineAnnotationValueFalse)
	first(&l.preserved, is.PreserveExpiryTime != nil)
	first(&l.released, is.PreserveExpiryTime == nil && was.PreserveExpiryTime != nil)
}

// lifecycleOf returns the lifecycle of the machine with a name, or an empty one.
func lifecycleOf(lifecycles []*lifecycle, name string) *lifecycle {
	for _, l := range lifecycles {
		if l.name == name {
			return l
		}
	}
	return &lifecycle{name: name}
}

// replacement returns the first machine that was created after a moment and became Running, or nil.
func replacement(lifecycles []*lifecycle, after moment) *lifecycle {
	for _, l := range lifecycles {
		if after.before(l.made) && !l.running.never() {
			return l
		}
	}
	return nil
}
