// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// awaitCreation waits for the end of an abandoned CreateMachine before the phase Terminating is
// recorded. After that no VM is created, also not by a call that ends with its process: see
// [logic.settledAt]. It returns false if there is no such call.
func (l *logic) awaitCreation() (Decision, bool) {
	if l.in.VM.Failure.Abandoned != driver.OpCreateMachine || l.phase() == v1alpha1.MachineTerminating {
		return Decision{}, false
	}
	return l.awaitCall()
}

// awaitCall waits for the end of an abandoned call of a machine that is being deleted. A lookup tells
// it. awaitCall returns false if there is no such call, or if the VM cannot be looked up.
func (l *logic) awaitCall() (Decision, bool) {
	f := l.in.VM.Failure
	if f.Abandoned == "" || !l.in.Class.usable() {
		return Decision{}, false
	}
	what, step := "Getting VM status", v1alpha1.GetVMStatus
	if f.Abandoned == driver.OpDeleteMachine {
		what, step = "VM deletion", v1alpha1.InitiateVMDeletion
	}
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"%s failed due to - %s. However, will re-try in the next resync. %s", what, f.Message, step))
	if !sameOperation(op, l.m.Status.LastOperation) {
		return l.recordOperation(reasonCallAbandoned, op), true
	}
	if d, waits := l.backOff(f); waits {
		return d, true
	}
	return l.do(CallDriver{Operation: driver.OpGetMachineStatus}, reasonLookFirst, ""), true
}
