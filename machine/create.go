// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// creation returns the next step until the VM of a machine is initialized.
func (l *logic) creation() Decision {
	if errs := Validate(l.m); len(errs) > 0 {
		return l.recordInvalid(ReasonInvalid, fieldErrors(errs))
	}
	if c := l.in.Class; c.Class == nil && !c.Looked {
		return hold(machinist.Hold{Subject: l.classSubject(), Reason: ReasonClassMissing, Message: "the class was not read", Until: l.now.Add(recheckAfter)})
	}
	if l.m.Spec.ProviderID == "" && l.expired() && !l.neverHadClass() { // one that has a VM may have joined meanwhile
		return l.failCreation(l.lastErrorCode())
	}
	if d, ok := l.classUnusable(); ok {
		return d
	}
	if !l.intended() {
		return l.recordOperation(ReasonNoVM, l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine))
	}
	return l.ensureVM()
}

// waitForReplacement waits until the MachineSet replaces a Failed machine.
func (l *logic) waitForReplacement() Decision {
	return hold(machinist.Hold{Subject: "machine/" + l.m.Name, Reason: ReasonFailed, Message: "waits until its MachineSet replaces it", Until: l.readySoon()})
}

// failCreation fails a machine at the end of the creation timeout, if a permit allows.
func (l *logic) failCreation(errorCode string) Decision {
	if d, waits := l.takePermit(ReasonCreationTimeout, 0); waits {
		return d
	}
	op := l.operation(cmp.Or(l.m.Status.LastOperation.Type, v1alpha1.MachineOperationCreate), v1alpha1.MachineStateFailed,
		fmt.Sprintf("Machine %s failed to join the cluster in %s.", l.m.Name, l.p.CreationTimeout))
	op.ErrorCode = errorCode
	return l.move(ReasonCreationTimeout, op)
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
		if d, waiting := l.creationFailed(vm.Failure); waiting {
			return d
		}
	}
	named := l.m.Spec.ProviderID != "" || vm.ProviderID != ""
	switch vm.Presence {
	case Absent:
		if !named {
			return l.createVM()
		}
	case Uninitialized, Present:
		if !named {
			return l.incompleteResponse()
		}
	default:
		return l.do(LookForVM{}, ReasonLookFirst, "")
	}
	if m, changed := l.withIdentity(); changed {
		return l.do(UpdateMachine{Machine: m, What: "provider ID " + m.Spec.ProviderID}, ReasonVMKnown, "")
	}
	if vm.Presence != Absent && l.m.Labels[v1alpha1.NodeLabelKey] == "" && vm.NodeName == "" && !l.in.Node.NoTarget {
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
	if !l.in.Node.NoTarget && foreignNode(l.m, l.in.Node.Node) {
		return l.staleNode()
	}
	reason := ReasonVMUninitialized
	switch vm := l.in.VM; {
	case vm.Presence == Uninitialized:
	case vm.Initialized, vm.Presence == Present && l.expired():
		return l.recordVM()
	case l.vanished():
		reason = ReasonVMVanished
	}
	return l.do(InitializeVM{LastKnownState: l.in.VM.LastKnownState}, reason, "")
}

// newState reports whether the driver returned a text that is not recorded yet.
func (l *logic) newState() bool {
	state := l.in.VM.LastKnownState
	return state != "" && state != l.m.Status.LastKnownState
}

// recordVM records that the VM exists.
func (l *logic) recordVM() Decision {
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine)
	if l.in.Node.NoTarget {
		op = l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateSuccessful, v1alpha1.CreatedMachine)
	}
	op.Description += l.vanishedText()
	d := l.move(ReasonVMCreated, op, func(s *v1alpha1.MachineStatus) {
		if l.in.Node.NoTarget {
			s.Addresses = mergeAddresses(s.Addresses, l.in.VM.Addresses)
			if name := l.in.VM.NodeName; name != "" {
				s.Addresses = mergeAddresses(s.Addresses, []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}})
			}
			if conditionOf(s.Conditions, corev1.NodeReady) == nil { // there is no Node that has one
				s.Conditions = append(s.Conditions, condition(corev1.NodeReady, corev1.ConditionTrue, string(ReasonVMCreated), v1alpha1.CreatedMachine, l.now))
			}
		}
	})
	if l.vanished() {
		d.Reason = ReasonVMVanished
	}
	return d
}

// addFinalizer adds the finalizer, and the priority for scale-down.
func (l *logic) addFinalizer() Decision {
	m := l.m.DeepCopy()
	m.Finalizers = append(m.Finalizers, v1alpha1.MCMFinalizerName)
	if m.Annotations[v1alpha1.MachinePriority] == "" {
		m.Annotations = withKey(m.Annotations, v1alpha1.MachinePriority, fmt.Sprint(v1alpha1.DefaultMachinePriority))
	}
	return l.do(UpdateMachine{Machine: m, What: "finalizer"}, ReasonNew, "")
}

// classUnusable returns the decision for a class with which no VM can be created. It returns false
// if the class is usable.
func (l *logic) classUnusable() (Decision, bool) {
	c := l.in.Class
	switch {
	case c.Class == nil:
		return l.recordInvalid(ReasonClassMissing, fmt.Sprintf("machine class %q does not exist", l.m.Spec.Class.Name)), true
	case c.Problem != "":
		return l.recordInvalid(ReasonClassUnusable, c.Problem), true
	case len(validateClass(c.Class)) > 0:
		return l.recordInvalid(ReasonClassUnusable, fieldErrors(validateClass(c.Class))), true
	case hasFinalizer(c.Class, v1alpha1.MCMFinalizerName):
		return Decision{}, false
	case l.expired():
		return l.failCreation(""), true
	}
	return l.holdToJoin(machinist.Hold{
		Subject: l.classSubject(), Reason: ReasonClassUnusable, Message: "waits for its finalizer", Until: l.now.Add(recheckAfter),
	}), true
}

// classSubject returns the subject of the class, or that of the machine if it names no class.
func (l *logic) classSubject() string {
	if name := l.m.Spec.Class.Name; name != "" {
		return "machineclass/" + name
	}
	return "machine/" + l.m.Name
}

// recordInvalid records that no VM can be created, and waits. The creation timeout keeps counting.
// A recorded intent stays, because a VM may exist.
func (l *logic) recordInvalid(r machinist.Reason, message string) Decision {
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, message)
	switch to, moves := l.next(ReasonInvalid); {
	case l.expired() && !l.neverHadClass():
		if d, waits := l.takePermit(ReasonCreationTimeout, 0); waits {
			return d
		}
		return l.move(ReasonCreationTimeout, op)
	case moves && to != l.phase(), !sameOperation(op, l.m.Status.LastOperation):
		d := l.move(ReasonInvalid, op)
		d.Reason = r
		return d
	}
	subject := "machine/" + l.m.Name
	if r != ReasonInvalid {
		subject = l.classSubject()
	}
	return l.holdToJoin(machinist.Hold{Subject: subject, Reason: r, Message: message, Until: l.now.Add(time.Minute)})
}

// creationFailed records a failed call and waits for its retry. It returns false when the retry is
// due.
func (l *logic) creationFailed(f CallFailure) (Decision, bool) {
	if l.expired() {
		return l.failCreation(f.Code.String()), true
	}
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, creationFailureText(f))
	op.ErrorCode = f.Code.String()
	phase := l.phase()
	if !sameOperation(op, l.m.Status.LastOperation) || phase != v1alpha1.MachineCrashLoopBackOff || l.newState() {
		return l.move(ReasonProviderFailed, op), true
	}
	d, waiting := l.backOff(f)
	if waiting {
		d.NextCheck = machinist.Earliest(d.NextCheck, l.creationDeadline())
	}
	return d, waiting
}

// backOff waits for the retry of a failed call. It returns false when the retry is due.
func (l *logic) backOff(f CallFailure) (Decision, bool) {
	until := f.until(l.p.Backoff, l.now)
	if !l.now.Before(until) {
		return Decision{}, false
	}
	return hold(machinist.Hold{Subject: "provider", Reason: ReasonProviderFailed, Message: f.Message, Until: until}), true
}

func creationFailureText(f CallFailure) string {
	if f.Operation == driver.OpInitializeMachine {
		return fmt.Sprintf("Provider error: %s. Initialize VM Instance", f.Message)
	}
	return "Cloud provider message - " + f.Message
}

// incompleteResponse treats a response without provider ID and Node name as a failure. It is
// recorded, and the VM is looked up again later.
func (l *logic) incompleteResponse() Decision {
	if l.in.VM.Failure.Code != codes.OK { // a later call failed, which was told, and its time is over
		return l.do(LookForVM{}, ReasonLookFirst, "")
	}
	d, waiting := l.creationFailed(CallFailure{
		Operation: driver.OpGetMachineStatus, Code: codes.Internal, At: l.in.VM.SeenAt, Attempts: 1,
		Message: fmt.Sprintf("the response is incomplete: provider ID %q, node name %q", l.in.VM.ProviderID, l.in.VM.NodeName),
	})
	if waiting {
		return d
	}
	return l.do(LookForVM{}, ReasonLookFirst, "")
}

// withIdentity returns the machine with the identity of its VM, and whether that changes the
// machine. Recorded values stay. A Node name that is not a valid label value is left out: see
// [NodeNameOf].
func (l *logic) withIdentity() (*v1alpha1.Machine, bool) {
	vm := l.in.VM
	needID := l.m.Spec.ProviderID == ""
	needNode := !l.in.Node.NoTarget && l.m.Labels[v1alpha1.NodeLabelKey] == "" && vm.NodeName != "" && labelValue(vm.NodeName)
	if !needID && !needNode {
		return nil, false
	}
	m := l.m.DeepCopy()
	if needID {
		m.Spec.ProviderID = vm.ProviderID
	}
	if needNode {
		m.Labels = withKey(m.Labels, v1alpha1.NodeLabelKey, vm.NodeName)
	}
	return m, true
}
