// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// lookInterval is how often the VM of a machine is looked up while its Node is missing or not
// ready.
const lookInterval = 5 * time.Minute

// checkVM looks for the VM of a machine while d waits for its Node, and records that the VM has
// vanished. That neither fails the machine before its timeouts nor creates another VM, because a
// response of the provider may be wrong. MCM does not look.
func (l *logic) checkVM(d Decision) Decision {
	if d.Action != nil || !TraitsOf(l.phase()).searched {
		return d
	}
	next := time.Time{}
	if l.in.Class.usable() && !l.in.VM.Blind {
		if next = l.nextLook(); !l.now.Before(next) {
			return l.do(LookForVM{}, d.Reason, d.Message)
		}
	}
	if l.vanished() {
		if op := l.vanishedOperation(); !l.drainsForUpdate() && !sameOperation(op, l.m.Status.LastOperation) {
			return l.recordOperation(ReasonVMVanished, op)
		}
		d.Holds = append(d.Holds, machinist.Hold{
			Subject: "provider", Reason: ReasonVMVanished, Until: next,
			Message: fmt.Sprintf("the VM %s is not found", l.m.Spec.ProviderID),
		})
	}
	d.NextCheck = machinist.Earliest(d.NextCheck, next)
	return d
}

// drainsForUpdate reports whether the Node is drained for an in-place update. The last operation
// then describes the drain.
func (l *logic) drainsForUpdate() bool {
	node := l.ownNode()
	return node != nil && updateStep(node) == v1alpha1.SelectedForUpdate
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
		if until := f.until(l.p.Backoff, l.now); until.After(next) {
			next = until
		}
	}
	return next
}

// vanished reports whether the provider does not find a VM that it had.
func (l *logic) vanished() bool {
	return l.in.VM.Presence == Absent && !l.in.VM.Blind && l.m.Spec.ProviderID != ""
}

// vanishedText returns the text for a VM that has vanished, or "".
func (l *logic) vanishedText() string {
	if !l.vanished() {
		return ""
	}
	return fmt.Sprintf(". The VM %s is not found at the provider", l.m.Spec.ProviderID)
}

// vanishedOperation returns the last operation for a machine whose VM has vanished.
func (l *logic) vanishedOperation() v1alpha1.LastOperation {
	if l.phase() == v1alpha1.MachinePending {
		return l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine+l.vanishedText())
	}
	return l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
		fmt.Sprintf("Machine %s is unhealthy%s", l.m.Name, l.vanishedText()))
}
