// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// intended reports whether the intent to have a VM is recorded. From then on a VM may exist.
func (l *logic) intended() bool {
	op := l.m.Status.LastOperation
	return l.m.Spec.ProviderID != "" || !l.neverRequested() && (l.phase() == v1alpha1.MachineCrashLoopBackOff ||
		op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateProcessing)
}

// notStarted reports whether the intent to have a VM was never recorded. Then there is no VM.
func (l *logic) notStarted() bool {
	s := l.m.Status
	return !l.intended() && s.CurrentStatus.Phase == "" && l.m.Labels[v1alpha1.NodeLabelKey] == "" && l.in.VM.ProviderID == "" &&
		(s.LastOperation.Type == "" || s.LastOperation.Type == v1alpha1.MachineOperationCreate)
}

// creationDeadline returns the end of the creation timeout: see [logic.extended]. Zero means no
// limit, also while the machine waits for a cause that its replacement would share.
func (l *logic) creationDeadline() time.Time {
	if l.p.CreationTimeout <= 0 || l.m.CreationTimestamp.IsZero() || l.blocked() {
		return time.Time{}
	}
	return l.extended(l.in.Freeze.start(l.creationStart(), l.now).Add(l.p.CreationTimeout))
}

// creationStart returns when the creation timeout begins: see [logic.observedStart], or later, if the
// condition VMRequested says so.
func (l *logic) creationStart() time.Time {
	begin := l.observedStart()
	if c := l.requested(); c != nil && recorded.Known(c.LastTransitionTime.Time, l.now) && c.LastTransitionTime.After(begin) {
		return c.LastTransitionTime.Time
	}
	return begin
}

// observedStart returns the first time at which a controller observed the machine or wrote its
// status, but not before its creation timestamp. The creation timestamp is a time of the API server.
// It counts alone if no other time is known.
func (l *logic) observedStart() time.Time {
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

// expired reports whether the creation timeout has ended.
func (l *logic) expired() bool {
	end := l.creationDeadline()
	return !end.IsZero() && !l.now.Before(end)
}

// holdToJoin returns a decision that waits, at most until the end of the creation timeout.
func (l *logic) holdToJoin(h machinist.Hold) Decision {
	d := hold(h)
	if !l.expired() {
		d.NextCheck = machinist.Earliest(d.NextCheck, l.creationDeadline())
	}
	return d
}

// timeout waits for a timeout that began when the phase was entered, or when the API servers
// answered again. It returns false when the timeout has ended. Zero waits without end.
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
