// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// when is the condition of a row in the table of transitions. It is not a function, because
// functions in the table would keep each decision on the heap.
type when uint8

const (
	always when = iota
	ifHasTarget
	ifIntended
	ifComponentsReady
	ifPreserved
	ifReadyAgain
	ifReplaceable
	ifHasNode
	ifWithoutTarget
)

// transition is one row of the table of transitions.
type transition struct {
	// from are the phases of the row. Nil means all phases.
	from []v1alpha1.MachinePhase
	// why is the reason of the decision.
	why machinist.Reason
	// when is the condition of the row.
	when when
	// to is the next phase.
	to v1alpha1.MachinePhase
}

// Sets of phases that several rows have.
var (
	creating        = []v1alpha1.MachinePhase{"", v1alpha1.MachineCrashLoopBackOff}
	joining         = append(slices.Clip(creating), v1alpha1.MachinePending)
	recovering      = []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineAvailable, v1alpha1.MachineInPlaceUpdateSuccessful}
	healthyPhases   = []v1alpha1.MachinePhase{v1alpha1.MachineRunning, v1alpha1.MachineAvailable, v1alpha1.MachineInPlaceUpdateSuccessful}
	unhealthyPhases = []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdateFailed}
	updating        = []v1alpha1.MachinePhase{v1alpha1.MachineInPlaceUpdating}
	updated         = append(slices.Clip(updating), v1alpha1.MachineInPlaceUpdateFailed)
)

// transitions is the table of transitions. Each change of phase is one of its rows. Of several rows
// that apply, the first counts.
var transitions = []transition{
	{creating, reasonVMCreated, ifHasTarget, v1alpha1.MachinePending},
	{creating, reasonVMCreated, always, v1alpha1.MachineAvailable},
	{nil, reasonProviderFailed, always, v1alpha1.MachineCrashLoopBackOff},
	{nil, reasonInvalid, ifIntended, v1alpha1.MachineCrashLoopBackOff},
	{nil, reasonCreationTimeout, always, v1alpha1.MachineFailed},
	{joining, reasonStaleNode, always, v1alpha1.MachineFailed},
	{[]v1alpha1.MachinePhase{v1alpha1.MachinePending}, reasonNodeReady, ifComponentsReady, v1alpha1.MachineRunning},
	{recovering, reasonNodeReady, always, v1alpha1.MachineRunning},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineFailed}, reasonNodeReady, ifPreserved, v1alpha1.MachineRunning},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineFailed}, reasonNodeReady, ifReadyAgain, v1alpha1.MachineRunning},
	{healthyPhases, reasonNodeUnhealthy, always, v1alpha1.MachineUnknown},
	{healthyPhases, reasonNodeGone, always, v1alpha1.MachineUnknown},
	{unhealthyPhases, reasonHealthTimeout, ifReplaceable, v1alpha1.MachineFailed},
	{nil, reasonDrained, always, v1alpha1.MachineInPlaceUpdating},
	{updated, reasonUpdateSucceeded, always, v1alpha1.MachineInPlaceUpdateSuccessful},
	{updating, reasonUpdateFailed, always, v1alpha1.MachineInPlaceUpdateFailed},
	{updating, reasonUpdateTimeout, always, v1alpha1.MachineInPlaceUpdateFailed},
	{nil, reasonDeleting, always, v1alpha1.MachineTerminating},
	{nil, reasonStatusInvalid, ifWithoutTarget, v1alpha1.MachineAvailable},
	{updated, reasonStatusInvalid, always, v1alpha1.MachineUnknown},
	{nil, reasonStatusInvalid, ifHasNode, v1alpha1.MachineUnknown},
	{nil, reasonStatusInvalid, always, v1alpha1.MachineCrashLoopBackOff},
}

// leads reports whether the table has a row for the phase and the reason, whatever its condition.
func leads(phase v1alpha1.MachinePhase, why machinist.Reason) bool {
	for i := range transitions {
		if row := &transitions[i]; row.why == why && slices.Contains(row.from, phase) {
			return true
		}
	}
	return false
}

// next returns the next phase for a reason. It returns false if the phase stays.
func (l *logic) next(why machinist.Reason) (v1alpha1.MachinePhase, bool) {
	for i := range transitions {
		row := &transitions[i]
		if row.why == why && (row.from == nil || slices.Contains(row.from, l.phase())) && l.holds(row.when) {
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

// holds reports whether a condition is true for the machine.
func (l *logic) holds(w when) bool {
	switch w {
	case ifHasTarget:
		return !l.in.Node.NoTarget
	case ifIntended:
		return l.intended()
	case ifComponentsReady:
		return l.in.Node.Node != nil && !facts.CriticalTaint(l.in.Node.Node)
	case ifPreserved:
		return l.m.Status.CurrentStatus.PreserveExpiryTime != nil
	case ifReadyAgain:
		return l.readyAgain()
	case ifReplaceable:
		return l.replacement().Reason == ""
	case ifHasNode:
		return l.ownNode() != nil
	case ifWithoutTarget:
		return l.in.Node.NoTarget && l.m.Spec.ProviderID != ""
	default:
		return true
	}
}

// impossible reports whether no machine without a deletion timestamp has the recorded phase: the
// phase does not exist, or it is Terminating. A restored backup has such a phase, or a status that
// was written by hand.
func (l *logic) impossible() bool {
	return !facts.Exists(l.phase()) || l.phase() == v1alpha1.MachineTerminating
}

// correctPhase replaces a phase that contradicts what is observed. A machine with a Node is then
// judged by its Node, and one that joins no cluster is Available. For other machines the creation
// is resumed: the VM is looked up, and no second VM is created.
func (l *logic) correctPhase() Decision {
	why := "does not match its VM and"
	switch {
	case !l.in.Node.NoTarget && l.nodeName() != "" && !l.nodeLooked():
		return l.notObserved(l.nodeSubject(), "")
	case l.phase() == v1alpha1.MachineTerminating:
		why = "without a deletion timestamp"
	case l.impossible():
		why = "does not exist and"
	}
	return l.move(reasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
		fmt.Sprintf("The phase %q of machine %s %s is corrected", l.phase(), l.m.Name, why)))
}

// untargeted returns the decision for a machine with a VM that joins no cluster. Its phase is
// Available while it has a VM, whatever phase it had in a cluster.
func (l *logic) untargeted() Decision {
	identified := l.m.Spec.ProviderID != ""
	switch {
	case l.phase() == v1alpha1.MachineFailed:
		return l.waitForReplacement()
	case identified && l.phase() != v1alpha1.MachineAvailable, !identified && l.in.VM.notFound():
		return l.correctPhase()
	default:
		return settled(reasonAvailable)
	}
}

// notFound reports whether the provider did not find the VM at the last look.
func (v VMView) notFound() bool { return v.Presence == absent && !v.Blind }

// correctUpdatePhase replaces the phase InPlaceUpdating or InPlaceUpdateFailed of a machine whose
// Node takes part in no in-place update. The decision is zero for other machines.
func (l *logic) correctUpdatePhase(node *corev1.Node) Decision {
	if !leads(l.phase(), reasonStatusInvalid) || facts.InUpdate(node) {
		return Decision{}
	}
	return l.move(reasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
		"The phase %q of machine %s is corrected: node %s takes part in no in-place update", l.phase(), l.m.Name, node.Name)))
}
