// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// findNodeName looks for the VM of a machine without the label node, and records the name of its
// Node. The Node may have joined, and has to be drained before a deletion. After a few failures of
// the provider the deletion continues without the name. A Node with the name of the machine needs
// no call.
func (l *logic) findNodeName() (Decision, bool) {
	vm, name := l.in.VM, ""
	switch node := l.ownNode(); {
	case l.in.Node.NoTarget || l.nodeName() != "":
		return Decision{}, false
	case node != nil && node.Labels[v1alpha1.MachineNameLabelKey] == l.m.Name:
		name = node.Name
	case vm.Presence == uninitialized, vm.Presence == present:
		name = vm.NodeName
	case vm.Presence == notLooked, l.lookedBeforeDeletion():
		return l.lookForNodeName()
	}
	if name == "" {
		return Decision{}, false
	}
	m := l.m.DeepCopy()
	m.Labels = withKey(m.Labels, v1alpha1.NodeLabelKey, name)
	return l.write(m, "node "+name, reasonVMKnown), true
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
	since, known := l.deletionNoticed()
	return known && vm.Presence == absent && vm.Asked == driver.OpGetMachineStatus && vm.SeenAt.Before(since)
}

// lookForNodeName looks for the VM to learn the name of its Node, or waits for a retry. It returns
// false if the provider cannot be asked.
func (l *logic) lookForNodeName() (Decision, bool) {
	if !l.in.Class.usable() {
		return Decision{}, false
	}
	switch f := l.in.VM.Failure; {
	case f.Abandoned != "": // the VM is looked for before its deletion
		return Decision{}, false
	case f.Code == codes.OK || f.Operation == driver.OpCreateMachine:
	case f.Operation != driver.OpGetMachineStatus || f.Attempts >= lookAttempts:
		return Decision{}, false
	default:
		if d, waits := l.lookFailed(f); waits {
			return d, true
		}
	}
	return l.do(CallDriver{Operation: driver.OpGetMachineStatus}, reasonLookFirst, ""), true
}

// lookFailed records that the lookup of the VM failed, and waits for its retry. It returns false
// when the retry is due.
func (l *logic) lookFailed(f CallFailure) (Decision, bool) {
	if !l.m.DeletionTimestamp.IsZero() {
		op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf(
			"Getting VM status failed due to - %s. However, will re-try in the next resync. %s", f.Message, v1alpha1.GetVMStatus))
		switch {
		case l.phase() != v1alpha1.MachineTerminating:
			return l.beginDeletion(op), true
		case !sameOperation(op, l.m.Status.LastOperation):
			return l.recordOperation(reasonProviderFailed, op), true
		}
	}
	return l.backOff(f)
}
