// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Decide returns the next step for one machine.
//
// A new machine gets a finalizer. Then its intent to have a VM is recorded, the VM is looked up,
// created if there is none, recorded and initialized. Then its Node is watched. For a machine that
// is being deleted, the Node is drained, the VM and the Node are deleted, and the finalizer is
// removed. Each step follows from the observation, so that a caller may stop anywhere and begin
// again.
//
// For the zero Observation it decides nothing. It decides nothing destructive on an incomplete
// view.
func Decide(in Observation, p Policy, now time.Time) Decision {
	if in.Machine == nil {
		return Decision{Reason: ReasonNotObserved}
	}
	l := logic{in: in, m: in.Machine, p: p.forMachine(in.Machine), now: now}
	switch {
	case !in.Machine.DeletionTimestamp.IsZero():
		return l.deletion()
	case in.Freeze.Frozen:
		return hold(in.Freeze.Hold(now))
	case !hasFinalizer(l.m, v1alpha1.MCMFinalizerName):
		return l.addFinalizer()
	default:
		l.templateApplied = l.in.Node.Node != nil && hasTemplate(l.in.Node.Node, nodeTemplate(l.m))
		return l.withValidity(l.withRefusal(l.steps()))
	}
}

// steps returns the decision of the phase of a machine that is not being deleted. It does not write
// the condition Valid.
func (l *logic) steps() Decision {
	if _, exists := phaseTraits[l.phase()]; !exists {
		return l.correctPhase()
	}
	if leads(l.phase(), ReasonVMCreated) { // one in a later phase has had a VM, also if its provider ID was lost
		return l.firstAction(l.preservation, l.creation)
	}
	return l.firstAction(l.dropTokens, l.preservation, l.findProviderID, l.watch)
}
