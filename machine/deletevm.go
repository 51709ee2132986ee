// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// findNodeName looks for the VM of a machine without the label node, and records the name of its
// Node. The Node may have joined, and has to be drained before a deletion. After a few failures of
// the provider the deletion continues without the name. A Node with the name of the machine needs
// no call.
func (l *logic) findNodeName() Decision {
	vm, name := l.in.VM, ""
	switch node := l.ownNode(); {
	case l.in.Node.NoTarget || l.nodeName() != "":
		return Decision{}
	case node != nil && node.Labels[v1alpha1.MachineNameLabelKey] == l.m.Name:
		name = node.Name
	case vm.Presence == uninitialized, vm.Presence == present:
		name = vm.NodeName
	case vm.Presence == notLooked, l.lookedBeforeDeletion():
		return l.lookForNodeName()
	}
	if name == "" {
		return Decision{}
	}
	m := l.m.DeepCopy()
	metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.NodeLabelKey, name)
	return l.write(m, "node "+name, reasonVMKnown)
}

// findVM looks for the VM. message is what that is for.
func (l *logic) findVM(message string) Decision {
	return l.do(CallDriver{Operation: driver.OpGetMachineStatus}, reasonLookFirst, message)
}

// findVMAfter looks for the VM when a hold has ended.
func (l *logic) findVMAfter(h machinist.Hold, message string) Decision {
	if l.now.Before(h.Until) {
		return hold(h)
	}
	return l.findVM(message)
}

// lookAttempts is how often the provider may fail to return the name of a Node before a deletion
// continues without it.
const lookAttempts = 3

// lookedBeforeDeletion reports whether the provider found no VM before the deletion was recorded. A
// VM that was being created then may exist now, and its Node may have joined.
func (l *logic) lookedBeforeDeletion() bool {
	vm := l.in.VM
	if l.m.DeletionTimestamp.IsZero() || l.phase() != v1alpha1.MachineTerminating {
		return false
	}
	since, known := facts.DeletionNoticed(l.m, l.now)
	return known && vm.Presence == absent && vm.Asked == driver.OpGetMachineStatus && vm.SeenAt.Before(since)
}

// lookForNodeName looks for the VM to learn the name of its Node, or waits for a retry. The decision
// is zero if the provider cannot be asked.
func (l *logic) lookForNodeName() Decision {
	if !l.askable() {
		return Decision{}
	}
	switch f := l.in.VM.Failure; {
	case f.Abandoned != "": // the VM is looked for before its deletion
		return Decision{}
	case f.Code == codes.OK || f.Operation == driver.OpCreateMachine:
	case f.Operation != driver.OpGetMachineStatus || f.Attempts >= lookAttempts:
		return Decision{}
	default:
		if d := l.lookFailed(f); d.Reason != "" {
			return d
		}
	}
	return l.findVM("")
}

// askable reports whether the driver can be asked for the VM: with a class that can be used, and before a deletion with
// any class that exists, since a VM without a recorded Node may have joined before its class or secret was broken.
func (l *logic) askable() bool {
	return l.in.Class.usable() || l.in.Class.callable() && !l.m.DeletionTimestamp.IsZero()
}

// lookFailed records that the lookup of the VM failed, and waits for its retry. The decision is
// zero when the retry is due.
func (l *logic) lookFailed(f CallFailure) Decision {
	if !l.m.DeletionTimestamp.IsZero() {
		op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf(
			"Getting VM status failed due to - %s. However, will re-try in the next resync. %s", f.Message, v1alpha1.GetVMStatus))
		switch {
		case l.phase() != v1alpha1.MachineTerminating:
			return l.beginDeletion(op)
		case !sameOperation(op, l.m.Status.LastOperation):
			return l.recordOperation(reasonProviderFailed, op)
		}
	}
	return l.backOff(f)
}

// awaitCreation waits for the end of an abandoned CreateMachine before the phase Terminating is
// recorded. After that no VM is created, also not by a call that ends with its process: see
// [logic.settledAt].
func (l *logic) awaitCreation() Decision {
	if l.in.VM.Failure.Abandoned != driver.OpCreateMachine || l.phase() == v1alpha1.MachineTerminating {
		return Decision{}
	}
	return l.awaitCall()
}

// awaitCall waits for the end of an abandoned call of a machine that is being deleted. A lookup
// tells it. The decision is zero if there is no such call, or if the VM cannot be looked up.
func (l *logic) awaitCall() Decision {
	f := l.in.VM.Failure
	if f.Abandoned == "" || !l.in.Class.callable() {
		return Decision{}
	}
	what, step := "Getting VM status", v1alpha1.GetVMStatus
	if f.Abandoned == driver.OpDeleteMachine {
		what, step = "VM deletion", v1alpha1.InitiateVMDeletion
	}
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"%s failed due to - %s. However, will re-try in the next resync. %s", what, f.Message, step))
	if !sameOperation(op, l.m.Status.LastOperation) {
		return l.recordOperation(reasonCallAbandoned, op)
	}
	if d := l.backOff(f); d.Reason != "" {
		return d
	}
	return l.findVM("")
}

// deleteAnswered reports whether the last call was DeleteMachine, and no VM is left.
func (v VMView) deleteAnswered() bool {
	return v.Asked == driver.OpDeleteMachine && v.Failure.Code == codes.OK && (v.Presence == deleted || v.Presence == absent)
}

// vmGone reports whether the VM is known to be deleted. A VM that was not found too early may be
// listed later.
func (l *logic) vmGone() bool {
	vm := l.in.VM
	return vm.deleteAnswered() && !vm.SeenAt.After(l.now) &&
		(facts.TakeOver(l.m, nil, l.now).VMDeleted || vm.Presence == deleted && l.m.Spec.ProviderID != "" || !vm.SeenAt.Before(l.settledAt()))
}

// deleteVM deletes the VM. The decision is zero when the VM is deleted.
//
// A confirmed deletion is believed at once if the provider ID was known, or if another controller
// had the same response before. Otherwise the provider may not list a new VM yet, and the deletion
// is repeated after [Policy.Settle].
func (l *logic) deleteVM() Decision {
	vm := l.in.VM
	switch {
	case l.ownership() == rivalVM, l.vmGone():
		return Decision{}
	case vm.deleteAnswered() && l.now.Before(l.settledAt()):
		return l.notSettled()
	case !l.in.Class.callable():
		return l.withoutClass()
	}
	if d := l.awaitCall(); d.Reason != "" {
		return d
	}
	if f := vm.Failure; f.Code != codes.OK && f.Operation == driver.OpDeleteMachine {
		if d := l.deletionFailed(f); d.Reason != "" {
			return d
		}
	}
	if vm.Asked == driver.OpDeleteMachine && !l.in.Node.NoTarget && l.nodeName() == "" {
		return l.findVM("") // meanwhile its Node may have joined
	}
	return l.do(CallDriver{Operation: driver.OpDeleteMachine, ByName: l.deletesByName()}, reasonDrained, "")
}

// notSettled waits until the provider lists all VMs of the machine.
func (l *logic) notSettled() Decision {
	const message = "the provider may not list a VM that was created just before the deletion"
	return hold(machinist.Hold{Subject: "provider", Reason: reasonVMNotSettled, Message: message, Until: l.settledAt()})
}

// settledAt returns from when on the provider lists all VMs of the machine. No VM is created after
// the phase Terminating is recorded.
func (l *logic) settledAt() time.Time {
	if l.p.Settle < 0 {
		return time.Time{}
	}
	since, _ := facts.DeletionNoticed(l.m, l.now)
	return since.Add(time.Second + l.p.Settle) // recorded times have no fractions
}

// classGrace is how long to wait for a missing class, also in a forced deletion. The class may be
// created again.
const classGrace = time.Minute

// withoutClass waits for a missing class, without which the driver cannot be called. A forced
// deletion records after a minute that the VM may be left. The decision is then zero, and the
// deletion continues.
func (l *logic) withoutClass() Decision {
	h := machinist.Hold{Subject: l.classSubject(), Reason: reasonClassMissing, Until: l.now.Add(classGrace)}
	if !l.in.Class.Looked {
		h.Message, h.Until = "the class was not read", l.now.Add(recheckAfter)
		return hold(h)
	}
	h.Message = "the VM cannot be deleted without it"
	last := l.m.Status.LastOperation
	waits := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf("%s: %s. %s", h.Subject, h.Message, v1alpha1.InitiateVMDeletion))
	goes := l.operation(waits.Type, waits.State, fmt.Sprintf("%s does not exist: the deletion is forced and does not delete the VM, so %s may be left. %s",
		h.Subject, cmp.Or(l.m.Spec.ProviderID, "a VM"), v1alpha1.InitiateVMDeletion))
	goes.ErrorCode = codes.FailedPrecondition.String() // news, also after the wait
	force := facts.DeletionForced(l.m)
	switch end := last.LastUpdateTime.Add(classGrace); {
	case force && last.Type == goes.Type && last.State == goes.State && last.ErrorCode == goes.ErrorCode:
		return Decision{} // that is told
	case !sameOperation(waits, last), last.LastUpdateTime.After(l.now):
		return l.recordOperation(h.Reason, waits)
	case force && !l.now.Before(end):
		return l.recordOperation(h.Reason, goes)
	case force:
		h.Until = end
	}
	return hold(h)
}

// deletionFailed records a failed deletion and waits for its retry. The decision is zero when the
// retry is due. A problem of the class is named, because it may be the reason.
func (l *logic) deletionFailed(f CallFailure) Decision {
	why := f.Message
	if problem := l.in.Class.Problem; problem != "" {
		why += " (" + problem + ")"
	}
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, failureText(driver.OpDeleteMachine, why))
	if !sameOperation(op, l.m.Status.LastOperation) || l.newState() {
		return l.recordOperation(reasonProviderFailed, op)
	}
	d := l.backOff(f)
	if problem := l.in.Class.Problem; d.Reason != "" && problem != "" {
		d.Holds = append(d.Holds, machinist.Hold{Subject: l.classSubject(), Reason: reasonClassUnusable, Message: problem, Until: d.NextCheck})
	}
	return d
}
