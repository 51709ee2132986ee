// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	codestatus "github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// presence is whether the VM of a machine exists, as the provider has returned it.
type presence uint8

// Presences of a VM.
const (
	// notLooked means that the provider was not asked, or that its response is in doubt.
	notLooked presence = iota
	// absent means that the provider has no VM of the machine.
	absent
	// uninitialized means that the VM exists and is not initialized.
	uninitialized
	// present means that the VM exists and is initialized.
	present
	// deleted means that the provider has confirmed the deletion.
	deleted
)

// VMView is what the provider has returned about the VM of one machine: a plain value that the
// caller keeps between decisions, by the UID of the machine. Losing it costs a driver call, never
// safety.
type VMView struct {
	// Presence is whether the VM exists. Zero means that the provider was not asked, or that its
	// response is in doubt.
	Presence presence
	// ProviderID and NodeName are the last returned ones. A VM that was returned once is not
	// created again.
	ProviderID, NodeName string
	// Named is the VM that the provider has for the name of the machine. It proves which Node is
	// that of the machine.
	Named NamedVM
	// Addresses are the returned addresses.
	Addresses []corev1.NodeAddress
	// LastKnownState is the opaque text of the driver.
	LastKnownState string
	// Blind means that the provider does not know whether there is a VM, so that the
	// absence of the VM has no meaning.
	Blind bool
	// Initialized means that InitializeMachine has succeeded, or that the provider does not have
	// it.
	Initialized bool
	// Asked is the last operation.
	Asked driver.Operation
	// SeenAt is when the last operation was called.
	SeenAt time.Time
	// Failure is the failure of the last call. The zero value means none.
	Failure CallFailure
	// CreateFailures and DeleteFailures count the consecutive failures of CreateMachine and
	// DeleteMachine.
	CreateFailures, DeleteFailures int
}

// NamedVM is the VM that the provider has for the name of a machine. A response to a request with
// the provider ID of the machine is not in it: a user may have written that ID.
type NamedVM struct {
	// AskedAt is when the provider was asked last. Zero means never.
	AskedAt time.Time
	// ProviderID and NodeName are those of the VM. They are empty if there is none. A VM that was
	// named once stays.
	ProviderID, NodeName string
}

// CallFailure is the failure of a driver call.
type CallFailure struct {
	// Operation is the failed operation.
	Operation driver.Operation
	// Code is that of the error. [codes.OK] means no failure.
	Code codes.Code
	// Message is the text of the error, for people.
	Message string
	// At is when the call ended.
	At time.Time
	// Attempts counts the consecutive failures of the operation.
	Attempts int
	// RetryAfter is the wait that the provider requested. Zero means none.
	RetryAfter time.Duration
	// Chance is a random number in [0, 1) that spreads retries.
	Chance float64
	// Abandoned is the operation of a call for the machine that has not ended although its time is
	// over: see [driver.AbandonedError]. Until it ends, every call fails with its Message. Empty
	// means none.
	Abandoned driver.Operation
	// ClassVersion is that of the result.
	ClassVersion string
}

// CallResult is the result of a driver call.
type CallResult struct {
	// Operation is the called operation.
	Operation driver.Operation
	// AskedAt is when the call was made. Zero means when its result arrived. The result was true at
	// that time.
	AskedAt time.Time
	// ProviderID, NodeName, Addresses and LastKnownState are those of the response, which may
	// also have an error.
	ProviderID, NodeName string
	Addresses            []corev1.NodeAddress
	LastKnownState       string
	// ByName means that the provider found the VM by the name of the machine, without its provider
	// ID, or that it created the VM.
	ByName bool
	// ClassVersion is the [ClassView.Version] of the decision to make the call.
	ClassVersion string
	// Err is the error of the call.
	Err error
}

// presences are the presences by operation and code. Every other code is a failure.
var presences = map[driver.Operation]map[codes.Code]presence{
	driver.OpGetMachineStatus: {
		codes.OK: present, codes.NotFound: absent, codes.Unimplemented: absent, codes.Uninitialized: uninitialized,
	},
	driver.OpCreateMachine:     {codes.OK: uninitialized},
	driver.OpInitializeMachine: {codes.OK: present, codes.Unimplemented: present},
	driver.OpDeleteMachine:     {codes.OK: deleted, codes.NotFound: absent},
}

// After returns the view after the result of a call at now. chance is a random number in [0, 1)
// that spreads retries. The result of an unknown operation changes nothing.
//
// The codes have the meaning of package driver: NotFound is a result of GetMachineStatus and
// DeleteMachine, Unimplemented of optional operations, and Uninitialized of GetMachineStatus.
// AlreadyExists of CreateMachine puts an earlier result in doubt. All other codes are failures.
// After a failure of CreateMachine or GetMachineStatus the VM is looked up again.
func (v VMView) After(a CallResult, now time.Time, chance float64) VMView {
	said, known := presences[a.Operation]
	if !known {
		return v
	}
	next, code := v, codes.Of(a.Err)
	next.SeenAt, next.Asked = now, a.Operation
	if !a.AskedAt.IsZero() && a.AskedAt.Before(now) {
		next.SeenAt = a.AskedAt
	}
	next.Addresses = facts.MergeAddresses(v.Addresses, a.Addresses)
	next.LastKnownState = cmp.Or(a.LastKnownState, v.LastKnownState)
	vm, answered := said[code]
	if !answered {
		return next.failed(a, code, now, chance)
	}
	next.Failure = CallFailure{}
	switch a.Operation {
	case driver.OpGetMachineStatus:
		next.Blind = code == codes.Unimplemented
	case driver.OpCreateMachine:
		next.Initialized = false
	case driver.OpInitializeMachine:
		next.Initialized = true
		if code == codes.Unimplemented && v.Presence == absent { // says nothing about the VM
			vm = absent
		}
	case driver.OpDeleteMachine:
		next.DeleteFailures = 0
	}
	if next.Presence = vm; vm != absent {
		next.CreateFailures = 0
	}
	next.ProviderID, next.NodeName = cmp.Or(a.ProviderID, v.ProviderID), cmp.Or(a.NodeName, v.NodeName)
	next.Named = v.Named.after(a, next.SeenAt)
	return next
}

// after returns the named VM after an answered call at now. InitializeMachine may be the first to
// return the name of the Node.
func (n NamedVM) after(a CallResult, now time.Time) NamedVM {
	switch a.Operation {
	case driver.OpInitializeMachine:
		if n.ProviderID != "" && (a.ProviderID == "" || a.ProviderID == n.ProviderID) {
			n.NodeName = cmp.Or(a.NodeName, n.NodeName)
		}
	case driver.OpCreateMachine, driver.OpGetMachineStatus:
		n.AskedAt = now
		if a.ByName && a.ProviderID != "" {
			n = NamedVM{AskedAt: now, ProviderID: a.ProviderID, NodeName: cmp.Or(a.NodeName, n.NodeName)}
		}
	}
	return n
}

// RetryNow returns the view in which the failed call is repeated at once, because a user asked for it with
// the annotation [v1alpha1.RetryNowAnnotation], which was removed from the machine.
func (v VMView) RetryNow() VMView {
	v.Failure.At = time.Time{}
	return v
}

// retryNow removes the annotation by which a user asks for the next attempt.
func (l *logic) retryNow() Decision {
	m := l.m.DeepCopy()
	delete(m.Annotations, v1alpha1.RetryNowAnnotation)
	return l.write(m, "no annotation "+v1alpha1.RetryNowAnnotation, reasonRetryNow)
}

// failed returns the view after a failed call.
func (v VMView) failed(a CallResult, code codes.Code, now time.Time, chance float64) VMView {
	f := CallFailure{
		Operation: a.Operation, Code: code, Message: saidOnce(a.Err), At: now, Attempts: 1, Chance: chance, RetryAfter: codes.RetryAfterOf(a.Err),
		ClassVersion: a.ClassVersion,
	}
	var abandoned *driver.AbandonedError
	if errors.As(a.Err, &abandoned) {
		f.Abandoned, f.Message = abandoned.Call.Operation, abandoned.Error()
	}
	// A call that was not made because of an abandoned one is no attempt.
	if v.Failure.Code != codes.OK && v.Failure.Operation == a.Operation && (v.Failure.Abandoned == "") == (f.Abandoned == "") {
		f.Attempts += v.Failure.Attempts
	}
	switch a.Operation {
	case driver.OpCreateMachine:
		v.CreateFailures++
		f.Attempts, v.Presence = v.CreateFailures, notLooked
	case driver.OpDeleteMachine:
		v.DeleteFailures++
		f.Attempts = v.DeleteFailures
	case driver.OpGetMachineStatus:
		v.Presence = notLooked
	}
	v.Failure = f
	return v
}

// until returns when to retry the failed operation. The first waits after a failed creation are
// those of MCM: see [codes.BackoffPolicy]. A failure in the future was recorded before the clock
// was set back, and is ignored.
func (f CallFailure) until(p codes.BackoffPolicy, now time.Time) time.Time {
	if !recorded.Known(f.At, now) {
		return time.Time{}
	}
	category := f.Code.Category()
	// An initialization is retried soon because its VM has a price, and a creation because a
	// lookup of the VM may be enough.
	if f.Operation == driver.OpInitializeMachine ||
		f.Operation == driver.OpCreateMachine && (f.Code == codes.AlreadyExists || f.Code == codes.Uninitialized) {
		category = codes.RetrySoon
	}
	failure := codes.Failure{Category: category, Attempts: f.Attempts, RetryAfter: f.RetryAfter}
	return f.At.Add(codes.Backoff(p, failure, func() float64 { return f.Chance }))
}

// lookInterval is how often the VM of a machine is looked up while its Node is missing or not
// ready.
const lookInterval = 5 * time.Minute

// checkVM looks for the VM of a machine while d waits for its Node, and records that the VM has
// vanished, or that the call has not ended. That neither fails the machine before its timeouts nor
// creates another VM, because a response of the provider may be wrong. MCM does not look.
func (l *logic) checkVM(d Decision) Decision {
	if d.Action != nil || !facts.TraitsOf(l.phase()).Searched {
		return d
	}
	next := time.Time{}
	if l.in.Class.usable() && !l.in.VM.Blind {
		if next = l.nextLook(); !l.now.Before(next) {
			return l.do(CallDriver{Operation: driver.OpGetMachineStatus}, d.Reason, d.Message)
		}
	}
	if l.vmText() != "" {
		h := machinist.Hold{Subject: "provider", Reason: reasonVMVanished, Until: next, Message: fmt.Sprintf("the VM %s is not found", l.m.Spec.ProviderID)}
		if !l.vanished() {
			h = l.in.VM.Failure.hold(next)
		}
		if op := l.vmOperation(); !l.drainsForUpdate() && !sameOperation(op, l.m.Status.LastOperation) {
			return l.recordOperation(h.Reason, op)
		}
		d.Holds = append(d.Holds, h)
	}
	return d.by(next)
}

// drainsForUpdate reports whether the Node is drained for an in-place update. The last operation
// then describes the drain.
func (l *logic) drainsForUpdate() bool {
	node := l.ownNode()
	return node != nil && facts.UpdateStep(node) == v1alpha1.SelectedForUpdate
}

// nextLook returns when to look for the VM next: when the machine becomes Unknown, and then every
// [lookInterval]. The VM of a Pending machine was found just before.
func (l *logic) nextLook() time.Time {
	entered, seen := l.m.Status.CurrentStatus.LastUpdateTime.Time, l.in.VM.SeenAt
	if !recorded.Known(entered, l.now) {
		entered = time.Time{}
	}
	if !recorded.Known(seen, l.now) {
		seen = time.Time{}
	}
	if seen.Before(entered) {
		if l.phase() == v1alpha1.MachineUnknown {
			return entered
		}
		seen = entered
	}
	next := seen.Add(lookInterval)
	if f := l.in.VM.Failure; f.Code != codes.OK && f.Operation == driver.OpGetMachineStatus {
		if until := l.retryAt(f); until.After(next) {
			next = until
		}
	}
	return next
}

func (l *logic) vanished() bool { return l.in.VM.Vanished(l.m) }

// Vanished reports whether the provider does not find the VM of a machine, which it had.
func (v VMView) Vanished(m *v1alpha1.Machine) bool {
	return m != nil && v.notFound() && m.Spec.ProviderID != ""
}

// vanishedText returns the text for a VM that has vanished, or "".
func (l *logic) vanishedText() string {
	if !l.vanished() {
		return ""
	}
	return fmt.Sprintf(". The VM %s is not found at the provider", l.m.Spec.ProviderID)
}

// vmText returns the text for a VM that has vanished, or for a lookup that has not ended, or "".
func (l *logic) vmText() string {
	if f := l.in.VM.Failure; f.Abandoned != "" {
		return ". " + f.Message
	}
	return l.vanishedText()
}

// vmOperation returns the last operation for a machine with a [logic.vmText].
func (l *logic) vmOperation() v1alpha1.LastOperation {
	if l.phase() == v1alpha1.MachinePending {
		return l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine+l.vmText())
	}
	return l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
		fmt.Sprintf("Machine %s is unhealthy%s", l.m.Name, l.vmText()))
}

// saidOnce returns the text of an error of a driver. A driver may put the text of another error, with another
// code, into its message. The message of that error replaces the text, so that one code and one message are
// left.
func saidOnce(err error) string {
	outer, ok := codestatus.FromError(err)
	if !ok {
		return err.Error()
	}
	message := outer.Message()
	for inner, nested := codestatus.FromError(errors.New(message)); nested; inner, nested = codestatus.FromError(errors.New(message)) {
		before, _, _ := strings.Cut(message, "machine codes error: ")
		message = before + inner.Message()
	}
	if message == outer.Message() {
		return err.Error()
	}
	return codestatus.New(outer.Code(), message).Error()
}
