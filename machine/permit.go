// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// takePermit takes a permit to fail the machine, once in a pass. It returns false if the permit is
// held. within is the limit of permits of the group. Zero takes none.
func (l *logic) takePermit(why machinist.Reason, within int) (Decision, bool) {
	switch p := l.in.Permit; {
	case !p.Asked:
		a := TakePermit{Key: l.group().String(), Holder: string(l.m.UID), Within: within, Why: why, VMGone: l.vanished()}
		return l.do(a, reasonPermit, ""), true
	case !p.Held:
		h := l.refusal()
		d := hold(h)
		d.NextCheck = machinist.Earliest(h.Until, l.now.Add(time.Minute))
		return d, true
	default:
		return Decision{}, false
	}
}

// refusal returns the hold for a refused permit.
func (l *logic) refusal() machinist.Hold {
	h, soon := l.in.Permit.Refused, l.now.Add(recheckAfter)
	if h.Reason != "" {
		if !h.Until.After(l.now) {
			h.Until = soon
		}
		return h
	}
	limit := machinist.Hold{Subject: "machine/" + l.m.Name, Reason: reasonReplacementLimit, Message: "no permit is free", Until: soon}
	if g := l.group(); g != (Group{}) {
		limit.Subject = g.subject()
	}
	if h.Until.After(l.now) {
		limit.Until = machinist.Earliest(soon, h.Until)
	}
	return limit
}

// extended returns the end of the creation timeout. After the end it returns the time until which a
// refused permit keeps the machine from failing. The machine continues to be created until then.
func (l *logic) extended(end time.Time) time.Time {
	if h := l.in.Permit.Refused; l.refused() && h.Until.After(l.now) && !end.After(l.now) {
		return h.Until
	}
	return end
}

// refused reports whether the controller refused the permit with a reason.
func (l *logic) refused() bool {
	p := l.in.Permit
	return p.Asked && !p.Held && p.Refused.Reason != ""
}

// withRefusal adds the hold of a refused permit to a decision that waits for a machine to join.
func (l *logic) withRefusal(d Decision) Decision {
	if d.Action != nil || !l.refused() || !leads(l.phase(), reasonStaleNode) || slices.Contains(d.Holds, l.refusal()) {
		return d
	}
	refused, _ := l.takePermit(reasonCreationTimeout, 0)
	return l.firstAction(func() Decision { return refused }, func() Decision { return d })
}

// FailingSince returns since when a machine fails to serve. Zero means that it serves, that its
// creation timeout has not ended, or that it was deleted while it served. It is zero for nil.
//
// For a machine that is Unknown or Failed, or whose in-place update has failed, it is when its Node
// stopped being Ready. If that is not recorded, or is later, it is when the machine entered its
// phase. For a machine that has not joined in time, it is the end of the creation timeout of p.
func FailingSince(m *v1alpha1.Machine, p Policy, now time.Time) time.Time {
	if m == nil {
		return time.Time{}
	}
	switch status := &m.Status; {
	case m.DeletionTimestamp != nil:
		return notReadySince(status, m.DeletionTimestamp.Time, time.Time{})
	case facts.TraitsOf(status.CurrentStatus.Phase).MayFail && status.CurrentStatus.Phase != v1alpha1.MachineRunning, status.CurrentStatus.Phase == v1alpha1.MachineFailed:
		entered := status.CurrentStatus.LastUpdateTime.Time
		return notReadySince(status, entered, entered)
	case leads(status.CurrentStatus.Phase, reasonStaleNode): // it is to join
		l := logic{m: m, p: p.forMachine(m), now: now}
		if l.expired() {
			return l.creationDeadline()
		}
	}
	return time.Time{}
}

// notReadySince returns when the Node of a machine stopped being Ready. If that is not recorded, or
// is after latest, it returns the other time.
func notReadySince(s *v1alpha1.MachineStatus, latest, otherwise time.Time) time.Time {
	ready := facts.ConditionOf(s.Conditions, corev1.NodeReady)
	if ready == nil || ready.Status == corev1.ConditionTrue || !recorded.Known(ready.LastTransitionTime.Time, latest) {
		return otherwise
	}
	return ready.LastTransitionTime.Time
}
