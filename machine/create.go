// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// creation returns the next step until the VM of a machine is initialized.
func (l *logic) creation() Decision {
	if errs := Validate(l.m); len(errs) > 0 {
		return l.recordInvalid(reasonInvalid, fieldErrors(errs))
	}
	if c := l.in.Class; c.Class == nil && !c.Looked {
		return hold(l.until(l.classSubject(), reasonClassMissing, "the class was not read", recheckAfter))
	}
	if d := l.classUnusable(); d.Reason != "" {
		return d
	}
	if l.m.Spec.ProviderID == "" && l.expired() && l.in.VM.Failure.Abandoned == "" && !shared(l.in.VM.Failure.Operation, l.in.VM.Failure.Code) { // one that has a VM may have joined meanwhile
		return l.failCreation(l.lastErrorCode())
	}
	return l.ensureVM()
}

// waitForReplacement waits until the MachineSet replaces a Failed machine.
func (l *logic) waitForReplacement() Decision {
	return hold(machinist.Hold{Subject: "machine/" + l.m.Name, Reason: reasonFailed, Message: "waits until its MachineSet replaces it", Until: l.readySoon()})
}

// failCreation fails a machine at the end of the creation timeout, if a permit allows.
func (l *logic) failCreation(errorCode string) Decision {
	if d := l.takePermit(reasonCreationTimeout, 0); d.Reason != "" {
		return d
	}
	op := l.operation(cmp.Or(l.m.Status.LastOperation.Type, v1alpha1.MachineOperationCreate), v1alpha1.MachineStateFailed,
		fmt.Sprintf("Machine %s failed to join the cluster in %s.", l.m.Name, l.p.CreationTimeout))
	op.ErrorCode = errorCode
	return l.move(reasonCreationTimeout, op)
}

// lastErrorCode returns the error code of the last failed call, recorded or not.
func (l *logic) lastErrorCode() string {
	if f := l.in.VM.Failure; f.Code != codes.OK {
		return f.Code.String()
	}
	return l.m.Status.LastOperation.ErrorCode
}

// ensureVM looks for the VM, creates it if there is none, and records its identity.
func (l *logic) ensureVM() Decision {
	vm := l.in.VM
	if vm.Failure.Code != codes.OK {
		if d := l.creationFailed(vm.Failure); d.Reason != "" {
			return d
		}
	}
	named := l.m.Spec.ProviderID != "" || vm.ProviderID != ""
	switch vm.Presence {
	case absent:
		if !named {
			return l.createVM()
		}
	case uninitialized, present:
		if !named {
			return l.incompleteResponse()
		}
	default:
		return l.findVM("")
	}
	if other := l.betterClaim("", vm.Named.ProviderID); other != nil {
		return l.nameTaken(other)
	}
	if m, changed := l.withIdentity(); changed {
		return l.write(m, "provider ID "+m.Spec.ProviderID, reasonVMKnown)
	}
	if vm.Presence != absent && l.m.Labels[v1alpha1.NodeLabelKey] == "" && vm.NodeName == "" && !l.in.Node.NoTarget {
		return l.incompleteResponse()
	}
	return l.initializeVM()
}

// initializeVM initializes a VM whose identity is recorded. A VM that was found is initialized
// again, even if the driver does not report it as uninitialized. Not all drivers report it, and the
// process that created the VM may have crashed. A second initialization does no harm. A VM that is
// not found may not be listed yet.
//
// After the creation timeout, a VM that was found is not initialized: its Node may have joined
// meanwhile. A VM whose Node would have the name of another machine's Node is not initialized
// either.
func (l *logic) initializeVM() Decision {
	if p, _ := l.nodeProof(); !l.in.Node.NoTarget && p == foreign {
		return l.staleNode()
	}
	reason := reasonVMUninitialized
	switch vm := l.in.VM; {
	case vm.Presence == uninitialized:
	case vm.Initialized, vm.Presence == present && l.expired():
		return l.recordVM()
	case l.vanished():
		reason = reasonVMVanished
	}
	return l.do(CallDriver{Operation: driver.OpInitializeMachine, LastKnownState: l.in.VM.LastKnownState}, reason, "")
}

// newState reports whether the driver returned a text that is not recorded yet.
func (l *logic) newState() bool {
	state := l.in.VM.LastKnownState
	return state != "" && state != l.m.Status.LastKnownState
}

// recordVM records that the VM exists.
func (l *logic) recordVM() Decision {
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine+l.vanishedText())
	if l.in.Node.NoTarget {
		op = l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateSuccessful, v1alpha1.CreatedMachine+l.vanishedText())
	}
	d := l.move(reasonVMCreated, op, stating(l.acceptedRequest(reasonVMCreated)), func(s *v1alpha1.MachineStatus) {
		if l.in.Node.NoTarget {
			stating(nil)(s) // no timeout follows
			s.Addresses = facts.MergeAddresses(s.Addresses, l.in.VM.Addresses)
			if name := l.in.VM.NodeName; name != "" {
				s.Addresses = facts.MergeAddresses(s.Addresses, []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}})
			}
			if facts.ConditionOf(s.Conditions, corev1.NodeReady) == nil { // there is no Node that has one
				s.Conditions = append(s.Conditions, facts.Condition(corev1.NodeReady, corev1.ConditionTrue, string(reasonVMCreated), v1alpha1.CreatedMachine, l.now))
			}
		}
	})
	if l.vanished() {
		d.Reason = reasonVMVanished
	}
	return d
}

// addFinalizer adds the finalizer, and the priority for scale-down.
func (l *logic) addFinalizer() Decision {
	m := l.m.DeepCopy()
	m.Finalizers = append(m.Finalizers, v1alpha1.MCMFinalizerName)
	if m.Annotations[v1alpha1.MachinePriority] == "" {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.MachinePriority, fmt.Sprint(v1alpha1.DefaultMachinePriority))
	}
	return l.write(m, "finalizer", reasonNew)
}

// classUnusable returns the decision for a class with which no VM can be created. It is zero for a
// usable class.
func (l *logic) classUnusable() Decision {
	c := l.in.Class
	switch {
	case c.Class == nil:
		return l.recordInvalid(reasonClassMissing, l.unusable())
	case l.unusable() != "":
		return l.recordInvalid(reasonClassUnusable, l.unusable())
	case facts.HasFinalizer(c.Class, v1alpha1.MCMFinalizerName):
		return Decision{}
	case l.expired(), !c.Class.DeletionTimestamp.IsZero(), l.blocked():
		return l.recordInvalid(reasonClassUnusable, fmt.Sprintf("machine class %q has no finalizer", c.Class.Name))
	}
	return l.holdToJoin(l.until(l.classSubject(), reasonClassNew, "waits for its finalizer", recheckAfter))
}

// classSubject returns the subject of the class, or that of the machine if it names no class.
func (l *logic) classSubject() string {
	if name := l.m.Spec.Class.Name; name != "" {
		return "machineclass/" + name
	}
	return "machine/" + l.m.Name
}

// recordInvalid records that no VM can be created, and waits until that is corrected. A recorded
// intent stays, because a VM may exist.
func (l *logic) recordInvalid(r machinist.Reason, message string) Decision {
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, message)
	request := l.refusedRequest(r, message)
	if to, moves := l.next(reasonInvalid); moves && to != l.phase() || !sameOperation(op, l.m.Status.LastOperation) || !l.stated(request) {
		d := l.move(reasonInvalid, op, stating(request))
		d.Reason = r
		return d
	}
	subject := "machine/" + l.m.Name
	if r != reasonInvalid {
		subject = l.classSubject()
	}
	return l.holdToJoin(l.until(subject, r, message, time.Minute))
}

// creationFailed records a failed call and waits for its retry. The decision is zero when the retry
// is due. A machine with an abandoned call does not fail: its deletion would wait for the call too,
// and calls for its replacement may not end either.
func (l *logic) creationFailed(f CallFailure) Decision {
	request := l.failedRequest(f.Message)
	if shared(f.Operation, f.Code) {
		request = l.refusedRequest(machinist.Reason(f.Code.String()), f.Message)
	} else if l.expired() && f.Abandoned == "" {
		return l.failCreation(f.Code.String())
	}
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, failureText(f.Operation, f.Message))
	op.ErrorCode = f.Code.String()
	phase := l.phase()
	if !sameOperation(op, l.m.Status.LastOperation) || phase != v1alpha1.MachineCrashLoopBackOff || l.newState() || !l.stated(request) {
		return l.move(reasonProviderFailed, op, stating(request))
	}
	d := l.backOff(f)
	if d.Reason == "" || l.expired() {
		return d
	}
	return d.by(l.creationDeadline())
}

// retryAt returns when to repeat a failed call. A call that was made with another version of the class
// or its secrets is repeated at once, because they may be its cause: the result is then zero.
func (l *logic) retryAt(f CallFailure) time.Time {
	if v := l.in.Class.Version; v != "" && v != f.ClassVersion && f.Abandoned == "" {
		return time.Time{}
	}
	return f.until(l.p.Backoff, l.now)
}

// backOff waits for the retry of a failed call. The decision is zero when the retry is due.
func (l *logic) backOff(f CallFailure) Decision {
	until := l.retryAt(f)
	if !l.now.Before(until) {
		return Decision{}
	}
	return hold(f.hold(until))
}

// hold returns the hold of a failed call until a time.
func (f CallFailure) hold(until time.Time) machinist.Hold {
	h := machinist.Hold{Subject: "provider", Reason: reasonProviderFailed, Message: f.Message, Until: until}
	if f.Abandoned != "" {
		h.Reason = reasonCallAbandoned
	}
	return h
}

// incompleteResponse treats a response without provider ID and Node name as a failure. It is
// recorded, and the VM is looked up again later.
func (l *logic) incompleteResponse() Decision {
	if l.in.VM.Failure.Code != codes.OK { // a later call failed, which was told, and its time is over
		return l.findVM("")
	}
	if d := l.creationFailed(CallFailure{
		Operation: driver.OpGetMachineStatus, Code: codes.Internal, At: l.in.VM.SeenAt, Attempts: 1,
		Message: fmt.Sprintf("the response is incomplete: provider ID %q, node name %q", l.in.VM.ProviderID, l.in.VM.NodeName),
	}); d.Reason != "" {
		return d
	}
	return l.findVM("")
}

// withIdentity returns the machine with the identity of its VM, and whether that changes the
// machine. Recorded values stay. A Node name that is not a valid label value is left out: see
// [VMView.NodeNameOf].
func (l *logic) withIdentity() (*v1alpha1.Machine, bool) {
	vm := l.in.VM
	needID := l.m.Spec.ProviderID == ""
	needNode := !l.in.Node.NoTarget && l.m.Labels[v1alpha1.NodeLabelKey] == "" && vm.NodeName != "" && facts.LabelValue(vm.NodeName)
	if !needID && !needNode {
		return nil, false
	}
	m := l.m.DeepCopy()
	if needID {
		m.Spec.ProviderID = vm.ProviderID
	}
	if needNode {
		metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.NodeLabelKey, vm.NodeName)
	}
	return m, true
}
