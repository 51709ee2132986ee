// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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
	d.NextCheck = machinist.Earliest(d.NextCheck, next)
	return d
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
