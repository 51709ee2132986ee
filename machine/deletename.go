// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// findNodeName looks for the VM of a machine that goes before the name of its Node
// was written down, and writes it down: the Node may have joined, and has to be
// drained. If the provider cannot tell after a few attempts, the deletion goes
// on. A Node that says itself that it is the machine's needs no such question.
func (l *logic) findNodeName() (Decision, bool) {
	vm, name := l.in.VM, ""
	switch node := l.ownNode(); {
	case l.in.Node.NoTarget || l.nodeName() != "":
		return Decision{}, false
	case node != nil && node.Labels[v1alpha1.MachineNameLabelKey] == l.m.Name:
		name = node.Name
	case vm.Presence == Uninitialized, vm.Presence == Present:
		name = vm.NodeName
	case vm.Presence == NotLooked, l.lookedBeforeDeletion():
		return l.lookForNodeName()
	}
	if name == "" {
		return Decision{}, false
	}
	m := l.m.DeepCopy()
	m.Labels = withKey(m.Labels, v1alpha1.NodeLabelKey, name)
	return l.do(UpdateMachine{Machine: m, What: "node " + name}, ReasonVMKnown, ""), true
}

// lookAttempts is how often a provider may fail to name a Node before a deletion
// goes on without.
const lookAttempts = 3

// lookedBeforeDeletion says whether it was before the deletion was written down that no VM
// was found. One that was on its way then may show now, and its Node have joined.
func (l *logic) lookedBeforeDeletion() bool {
	vm := l.in.VM
	if l.m.DeletionTimestamp.IsZero() || l.phase() != v1alpha1.MachineTerminating {
		return false
	}
	since, known := l.deletionNoticed()
	return known && vm.Presence == Absent && vm.Asked == driver.OpGetMachineStatus && vm.SeenAt.Before(since)
}

// lookForNodeName looks for the VM to learn the name of its Node, or waits until it may.
// It returns false if there is no use in that.
func (l *logic) lookForNodeName() (Decision, bool) {
	if !l.in.Class.usable() {
		return Decision{}, false
	}
	switch f := l.in.VM.Failure; {
	case f.Code == codes.OK || f.Operation == driver.OpCreateMachine:
	case f.Operation != driver.OpGetMachineStatus || f.Attempts >= lookAttempts:
		return Decision{}, false
	default:
		if d, waits := l.lookFailed(f); waits {
			return d, true
		}
	}
	return l.do(LookForVM{}, ReasonLookFirst, ""), true
}

// lookFailed writes down how a machine that is being deleted failed to learn the
// name of its Node, and waits until it may ask again. It returns false when that
// time has come.
func (l *logic) lookFailed(f CallFailure) (Decision, bool) {
	if !l.m.DeletionTimestamp.IsZero() {
		op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf(
			"Getting VM status failed due to - %s. However, will re-try in the next resync. %s", f.Message, v1alpha1.GetVMStatus))
		switch {
		case l.phase() != v1alpha1.MachineTerminating:
			return l.beginDeletion(op), true
		case !sameOperation(op, l.m.Status.LastOperation):
			return l.recordOperation(ReasonProviderFailed, op), true
		}
	}
	return l.backOff(f)
}
