// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Decide returns the next step in the life of one machine.
//
// A machine that is not being deleted is guarded by a finalizer, then its
// intent to have a VM is written down, then the VM is looked for, made if there
// is none, written down and initialized; then its Node is watched. A machine
// that is being deleted has its Node drained, its VM deleted, its Node deleted,
// and is then let go. Every step follows from what is observed, so that a caller
// may stop anywhere and begin again.
//
// Nothing is decided for a zero Observation, and nothing destructive on a view
// that is not complete.
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

// steps returns what [Decide] decides of a machine without regard to its
// verdict.
func (l *logic) steps() Decision {
	if _, exists := phaseTraits[l.phase()]; !exists {
		return l.correctPhase()
	}
	if leads(l.phase(), ReasonVMCreated) { // one in a later phase has had a VM, also if its provider ID was lost
		return l.firstAction(l.preservation, l.creation)
	}
	return l.firstAction(l.dropTokens, l.preservation, l.findProviderID, l.watch)
}
