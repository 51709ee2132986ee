// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// next returns the next phase for a reason. It returns false if the phase stays.
func (l *logic) next(why machinist.Reason) (v1alpha1.MachinePhase, bool) {
	for i := range transitions {
		row := &transitions[i]
		if row.why == why && (row.from == nil || slices.Contains(row.from, l.phase())) && l.holds(row.guard) {
			return row.to, true
		}
	}
	return "", false
}

// moves reports whether the phase changes for a reason.
func (l *logic) moves(why machinist.Reason) bool {
	_, ok := l.next(why)
	return ok
}

// move returns a decision that writes the change of phase for a reason, the operation, and other
// changes of the status. If the phase stays, its time stays, too, because timeouts count from it.
func (l *logic) move(why machinist.Reason, op v1alpha1.LastOperation, changes ...func(*v1alpha1.MachineStatus)) Decision {
	to, ok := l.next(why)
	return l.record(why, op.Description, func(s *v1alpha1.MachineStatus) {
		s.LastOperation = op
		for _, change := range changes {
			change(s)
		}
		if ok && (to != s.CurrentStatus.Phase || s.CurrentStatus.LastUpdateTime.IsZero()) {
			l.enter(s, to)
		}
	})
}

// holds reports whether a guard is true for the machine.
func (l *logic) holds(g guard) bool {
	switch g {
	case ifHasTarget:
		return !l.in.Node.NoTarget
	case ifIntended:
		return l.intended()
	case ifComponentsReady:
		return l.in.Node.Node != nil && !criticalTaint(l.in.Node.Node)
	case ifPreserved:
		return l.m.Status.CurrentStatus.PreserveExpiryTime != nil
	case ifReadyAgain:
		return l.readyAgain()
	case ifReplaceable:
		_, waits := l.replacement()
		return !waits
	case ifHasNode:
		return l.ownNode() != nil
	case ifWithoutTarget:
		return l.in.Node.NoTarget && l.m.Spec.ProviderID != ""
	default:
		return true
	}
}
