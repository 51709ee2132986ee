// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// intended says whether it is written down that a VM is wanted. From then on one
// may exist.
func (l *logic) intended() bool {
	op := l.m.Status.LastOperation
	return l.m.Spec.ProviderID != "" ||
		l.phase() == v1alpha1.MachineCrashLoopBackOff ||
		op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateProcessing
}

// notStarted says that it was never written down that a VM is wanted, so that there
// is none.
func (l *logic) notStarted() bool {
	s := l.m.Status
	return !l.intended() && s.CurrentStatus.Phase == "" && l.m.Labels[v1alpha1.NodeLabelKey] == "" && l.in.VM.ProviderID == "" &&
		(s.LastOperation.Type == "" || s.LastOperation.Type == v1alpha1.MachineOperationCreate)
}

// neverHadClass says that nothing was begun for the machine as its class does not exist.
// It is not failed: its owner would replace it by others of the same kind, and it
// could not be told any more that there is no VM, without which it could not go.
func (l *logic) neverHadClass() bool { return l.notStarted() && l.in.Class.Looked && l.in.Class.Class == nil }

// creationDeadline returns when the machine has taken too long to join, or zero
// for never; see [logic.extended].
func (l *logic) creationDeadline() time.Time {
	if l.p.CreationTimeout <= 0 || l.m.CreationTimestamp.IsZero() {
		return time.Time{}
	}
	return l.extended(l.in.Freeze.start(l.creationStart(), l.now).Add(l.p.CreationTimeout))
}

// creationStart returns when the machine began to arrive, by the clock of the controllers:
// when one of them saw it or wrote of it first. That is not before its creation
// timestamp, which is by the clock of the API server, and counts alone if the
// controllers have recorded nothing.
func (l *logic) creationStart() time.Time {
	created, s := l.m.CreationTimestamp.Time, l.m.Status
	if !recorded.Known(l.in.FirstSeen, l.now) {
		return created
	}
	own := l.in.FirstSeen
	for _, t := range []time.Time{s.CurrentStatus.LastUpdateTime.Time, s.LastOperation.LastUpdateTime.Time} {
		if recorded.Known(t, l.now) && t.Before(own) {
			own = t
		}
	}
	if recorded.Known(created, l.now) && created.After(own) {
		return created
	}
	return own
}

// expired says whether the machine has taken too long to join.
func (l *logic) expired() bool {
	end := l.creationDeadline()
	return !end.IsZero() && !l.now.Before(end)
}

// holdToJoin returns a decision that waits, but not beyond the creation timeout.
func (l *logic) holdToJoin(h machinist.Hold) Decision {
	d := hold(h)
	if !l.expired() {
		d.NextCheck = machinist.Earliest(d.NextCheck, l.creationDeadline())
	}
	return d
}

// timeout waits until the phase has lasted for so long since it was entered, or since the
// API servers answer again. It returns false when that time has come. Without a duration
// it waits for ever.
func (l *logic) timeout(h machinist.Hold, lasts time.Duration) (Decision, bool) {
	since := l.m.Status.CurrentStatus.LastUpdateTime
	switch {
	case lasts <= 0:
		return hold(h), true
	case !recorded.Known(since.Time, l.now): // the timeout begins now
		return l.resetPhaseTime(h.Reason), true
	}
	h.Until = l.in.Freeze.start(since.Time, l.now).Add(lasts)
	return hold(h), l.now.Before(h.Until)
}
