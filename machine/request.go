// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// shared reports whether another machine of the same class would have the same failure before it
// has a VM: the request or the credentials are wrong, or the provider does not have what the class
// names. A machine is not failed for it, because its replacement would fail, too.
func shared(op driver.Operation, code codes.Code) bool {
	switch code.Category() {
	case codes.FixRequest, codes.FixCredentials:
		return true
	case codes.TreatAsAbsent:
		return op == driver.OpCreateMachine
	default:
		return false
	}
}

// requested returns the recorded condition VMRequested, or nil.
func (l *logic) requested() *corev1.NodeCondition {
	return facts.ConditionOf(l.m.Status.Conditions, v1alpha1.MachineVMRequested)
}

// neverRequested reports whether it is recorded that no VM was requested.
func (l *logic) neverRequested() bool {
	c := l.requested()
	return c != nil && c.Status == corev1.ConditionFalse
}

// blocked reports whether a cause is recorded for which the machine must not fail, because its
// replacement would share it. The creation timeout does not end meanwhile. Without the condition,
// the error code counts: another controller has written it.
func (l *logic) blocked() bool {
	if c := l.requested(); c != nil {
		return causes(c)
	}
	op := l.m.Status.LastOperation
	code, _ := codes.Parse(op.ErrorCode)
	return op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateFailed && shared(driver.OpGetMachineStatus, code)
}

// causes reports whether a condition VMRequested names a cause that a replacement would share.
func causes(c *corev1.NodeCondition) bool {
	return c.Status != corev1.ConditionTrue && c.Reason != string(reasonProviderFailed) && c.Reason != string(reasonDeleting)
}

// refusedRequest returns the condition VMRequested for a cause that a replacement would share.
func (l *logic) refusedRequest(r machinist.Reason, message string) *corev1.NodeCondition {
	if l.intended() {
		return l.request(corev1.ConditionUnknown, r, message)
	}
	return l.request(corev1.ConditionFalse, r, message)
}

// failedRequest returns the condition VMRequested for any other failure. A machine whose VM was
// requested needs none, unless the creation timeout has begun again.
func (l *logic) failedRequest(message string) *corev1.NodeCondition {
	switch {
	case !l.intended():
		return l.request(corev1.ConditionFalse, reasonProviderFailed, message)
	case l.requested() != nil:
		return l.request(corev1.ConditionTrue, reasonNoVM, "")
	default:
		return nil
	}
}

// acceptedRequest returns the condition VMRequested for a request that nothing keeps from being
// made. A machine without the condition needs none.
func (l *logic) acceptedRequest(r machinist.Reason) *corev1.NodeCondition {
	if l.requested() == nil {
		return nil
	}
	return l.request(corev1.ConditionTrue, r, "")
}

// request returns the condition VMRequested. Its time is the begin of the creation timeout, which
// begins again when a shared cause ends.
func (l *logic) request(status corev1.ConditionStatus, r machinist.Reason, message string) *corev1.NodeCondition {
	c := facts.Condition(v1alpha1.MachineVMRequested, status, string(r), facts.Shorten(message), l.now)
	if before := l.requested(); causes(&c) == (before != nil && causes(before)) {
		c.LastTransitionTime.Time = l.creationStart()
	}
	return &c
}

// stating returns a change of the status that records a condition VMRequested. Nil removes it.
func stating(c *corev1.NodeCondition) func(*v1alpha1.MachineStatus) {
	return func(s *v1alpha1.MachineStatus) {
		s.Conditions = facts.WithCondition(s.Conditions, v1alpha1.MachineVMRequested, c)
	}
}

// stated reports whether a condition VMRequested is recorded, except for its times and message.
func (l *logic) stated(c *corev1.NodeCondition) bool {
	before := l.requested()
	if c == nil || before == nil {
		return c == before
	}
	return c.Status == before.Status && c.Reason == before.Reason
}

// notRequested reports whether there is no VM to delete: no VM was requested for the machine, which
// is recorded, or its class is unusable and no request was begun. Another controller may have made a
// VM without a record, so the provider is asked once for a machine with a usable class. That it
// refuses the credentials or the request is answer enough.
func (l *logic) notRequested() bool {
	vm := l.in.VM
	if l.m.Spec.ProviderID != "" || l.m.Labels[v1alpha1.NodeLabelKey] != "" || vm.ProviderID != "" || vm.Named.ProviderID != "" || vm.Presence == present || vm.Presence == uninitialized {
		return false
	}
	if l.neverRequested() && l.requested().Reason != string(reasonDeleting) {
		return true
	}
	if !l.neverRequested() && !l.notStarted() {
		return false
	}
	return shared(vm.Failure.Operation, vm.Failure.Code) || l.in.Class.Looked && l.unusable() != ""
}

// unusable returns why no VM can be created for the machine with its class, or "".
func (l *logic) unusable() string {
	c := l.in.Class
	errs := append(Validate(l.m), facts.ValidateClass(c.Class)...)
	switch {
	case c.Problem != "":
		return c.Problem
	case len(errs) > 0:
		return fieldErrors(errs)
	case c.Class == nil:
		return fmt.Sprintf("machine class %q does not exist", l.m.Spec.Class.Name)
	default:
		return ""
	}
}

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

// creationStart returns when the creation timeout begins: see [logic.observedStart], or later, if
// the condition VMRequested says so.
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
	if l.expired() {
		return hold(h)
	}
	return hold(h).by(l.creationDeadline())
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
