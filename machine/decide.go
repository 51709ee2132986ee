// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
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
	d := l.decide()
	if in.Freeze.Frozen && in.Machine.DeletionTimestamp.IsZero() {
		return d
	}
	return l.withWaiting(d)
}

// decide returns the decision, without what the status says about its holds.
func (l *logic) decide() Decision {
	switch {
	case facts.RetryAsked(l.m) && !l.in.Freeze.Frozen:
		return l.retryNow()
	case !l.m.DeletionTimestamp.IsZero():
		return l.deletion()
	case l.in.Freeze.Frozen:
		return l.frozen()
	case !facts.HasFinalizer(l.m, v1alpha1.MCMFinalizerName):
		return l.addFinalizer()
	default:
		l.templateApplied = l.in.Node.Node != nil && hasTemplate(l.in.Node.Node, facts.NodeTemplate(l.m))
		return l.withValidity(l.withRefusal(l.steps()))
	}
}

// frozen returns the decision during a freeze: the machine waits, unless a user deletes it by its
// Node. A freeze holds no deletion by a user.
func (l *logic) frozen() Decision {
	node := l.ownNode()
	if node != nil && l.nodeLooked() && facts.DeletionRequested(node) && facts.HasFinalizer(l.m, v1alpha1.MCMFinalizerName) {
		return l.deleteMachine()
	}
	return hold(l.in.Freeze.Hold(l.now))
}

// deleteMachine deletes the machine because a user has requested it by the Node.
func (l *logic) deleteMachine() Decision {
	return l.do(machinist.Delete{Object: l.m}, reasonDeleting, "")
}

// steps returns the decision of the phase of a machine that is not being deleted. It does not write
// the condition Valid.
func (l *logic) steps() Decision {
	if l.impossible() {
		return l.correctPhase()
	}
	if leads(l.phase(), reasonVMCreated) { // one in a later phase has had a VM, also if its provider ID was lost
		return l.firstAction(l.preservation, l.creation)
	}
	return l.firstAction(l.dropTokens, l.preservation, l.findProviderID, l.watch)
}
