// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Trigger is what happens to a machine so that its phase may change.
type Trigger string

// The triggers.
const (
	// TriggerVMExists: the VM exists, is written down and initialised.
	TriggerVMExists Trigger = "VMExists"
	// TriggerProviderFailed: a driver call on the way to the VM failed.
	TriggerProviderFailed Trigger = "ProviderFailed"
	// TriggerRejected: the machine or its class cannot be used as it is, although a
	// VM may exist.
	TriggerRejected Trigger = "Rejected"
	// TriggerCreationTimeout: the machine took too long to join.
	TriggerCreationTimeout Trigger = "CreationTimeout"
	// TriggerStaleNode: the Node that the VM is to become belongs to another.
	TriggerStaleNode Trigger = "StaleNode"
	// TriggerNodeHealthy: the Node is there and healthy.
	TriggerNodeHealthy Trigger = "NodeHealthy"
	// TriggerNodeUnhealthy: the Node is there and not healthy.
	TriggerNodeUnhealthy Trigger = "NodeUnhealthy"
	// TriggerNodeGone: the Node does not exist any more.
	TriggerNodeGone Trigger = "NodeGone"
	// TriggerHealthTimeout: the machine was not healthy for too long.
	TriggerHealthTimeout Trigger = "HealthTimeout"
	// TriggerDrainedForUpdate: the Node is drained and may be updated in place.
	TriggerDrainedForUpdate Trigger = "DrainedForUpdate"
	// TriggerUpdateSucceeded: the Node says that it is updated.
	TriggerUpdateSucceeded Trigger = "UpdateSucceeded"
	// TriggerUpdateFailed: the Node says that it could not be updated.
	TriggerUpdateFailed Trigger = "UpdateFailed"
	// TriggerUpdateTimeout: the update in place took too long.
	TriggerUpdateTimeout Trigger = "UpdateTimeout"
	// TriggerDeleted: somebody has deleted the machine.
	TriggerDeleted Trigger = "Deleted"
	// TriggerPhaseInvalid: the phase is none that a machine can have.
	TriggerPhaseInvalid Trigger = "PhaseInvalid"
	// TriggerNoUpdate: the Node is there and takes part in no update in place.
	TriggerNoUpdate Trigger = "NoUpdate"
)

// Guard is what has to hold besides, so that a trigger has its effect. The empty
// Guard always holds.
type Guard string

// The guards.
const (
	// GuardTarget: there is a cluster to join.
	GuardTarget Guard = "there is a cluster to join"
	// GuardNoTarget: there is none.
	GuardNoTarget Guard = "there is no cluster to join"
	// GuardBegun: it is written down that a VM is wanted, so that one may exist.
	GuardBegun Guard = "a VM was asked for"
	// GuardIdentified: there is a cluster to join, and the provider ID of the VM is
	// written down.
	GuardIdentified Guard = "the VM is known and there is a cluster to join"
	// GuardNotCritical: the Node waits for no critical components.
	GuardNotCritical Guard = "no critical component is missing"
	// GuardPreserved: the machine is preserved.
	GuardPreserved Guard = "the machine is preserved"
	// GuardReadyAgain: the Node became Ready after the machine failed. See [ReadyAgain].
	GuardReadyAgain Guard = "the Node became Ready after the machine failed"
	// GuardReplaceable: the machine is of no deployment; or the others of its
	// deployment are known, fewer than [Policy.MaxReplacements] of them are being
	// replaced, and the machine has the permit to be one of those. See [Replacing] and
	// [TakePermit].
	GuardReplaceable Guard = "the replacement limit allows"
)

// Transition is one row of the table of phases: a machine in one of the phases
// From, to which Trigger happens while Guard holds, goes to the phase To.
type Transition struct {
	// From are the phases in which the row counts. Nil is any phase.
	From []v1alpha1.MachinePhase
	// Trigger is what has to happen.
	Trigger Trigger
	// Guard is what has to hold besides; empty always holds.
	Guard Guard
	// To is the phase that follows.
	To v1alpha1.MachinePhase
	// Reason of the decision that writes it.
	Reason machinist.Reason
}

// Phases that rows have in common.
var (
	arriving = []v1alpha1.MachinePhase{"", v1alpha1.MachineCrashLoopBackOff}
	recovers = []v1alpha1.MachinePhase{
		v1alpha1.MachineUnknown, v1alpha1.MachineAvailable, v1alpha1.MachineTerminating, v1alpha1.MachineInPlaceUpdateSuccessful,
	}
	running  = []v1alpha1.MachinePhase{v1alpha1.MachineRunning, v1alpha1.MachineTerminating, v1alpha1.MachineInPlaceUpdateSuccessful}
	updating = []v1alpha1.MachinePhase{v1alpha1.MachineInPlaceUpdating, v1alpha1.MachineInPlaceUpdateFailed}
)

// transitions is the table of phases. Of several rows that fit, the first counts.
var transitions = []Transition{
	{arriving, TriggerVMExists, GuardTarget, v1alpha1.MachinePending, ReasonVMCreated},
	{arriving, TriggerVMExists, GuardNoTarget, v1alpha1.MachineAvailable, ReasonAvailable},
	{nil, TriggerProviderFailed, "", v1alpha1.MachineCrashLoopBackOff, ReasonProviderFailed},
	{nil, TriggerRejected, GuardBegun, v1alpha1.MachineCrashLoopBackOff, ReasonInvalid},
	{nil, TriggerCreationTimeout, "", v1alpha1.MachineFailed, ReasonCreationTimeout},
	{[]v1alpha1.MachinePhase{"", v1alpha1.MachineCrashLoopBackOff, v1alpha1.MachinePending}, TriggerStaleNode, "", v1alpha1.MachineFailed, ReasonStaleNode},
	{[]v1alpha1.MachinePhase{v1alpha1.MachinePending}, TriggerNodeHealthy, GuardNotCritical, v1alpha1.MachineRunning, ReasonNodeReady},
	{recovers, TriggerNodeHealthy, "", v1alpha1.MachineRunning, ReasonNodeReady},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineFailed}, TriggerNodeHealthy, GuardPreserved, v1alpha1.MachineRunning, ReasonNodeReady},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineFailed}, TriggerNodeHealthy, GuardReadyAgain, v1alpha1.MachineRunning, ReasonNodeReady},
	{running, TriggerNodeUnhealthy, "", v1alpha1.MachineUnknown, ReasonNodeUnhealthy},
	{running, TriggerNodeGone, "", v1alpha1.MachineUnknown, ReasonNodeGone},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdateFailed}, TriggerHealthTimeout, GuardReplaceable, v1alpha1.MachineFailed, ReasonHealthTimeout},
	{nil, TriggerDrainedForUpdate, "", v1alpha1.MachineInPlaceUpdating, ReasonDrainedForUpdate},
	{updating, TriggerUpdateSucceeded, "", v1alpha1.MachineInPlaceUpdateSuccessful, ReasonUpdateSucceeded},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineInPlaceUpdating}, TriggerUpdateFailed, "", v1alpha1.MachineInPlaceUpdateFailed, ReasonUpdateFailed},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineInPlaceUpdating}, TriggerUpdateTimeout, "", v1alpha1.MachineInPlaceUpdateFailed, ReasonUpdateTimeout},
	{nil, TriggerDeleted, "", v1alpha1.MachineTerminating, ReasonDeleting},
	{nil, TriggerPhaseInvalid, GuardIdentified, v1alpha1.MachineUnknown, ReasonStatusInvalid},
	{nil, TriggerPhaseInvalid, "", v1alpha1.MachineCrashLoopBackOff, ReasonStatusInvalid},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineInPlaceUpdating}, TriggerNoUpdate, "", v1alpha1.MachineUnknown, ReasonStatusInvalid},
}

// Transitions returns the table of phases: every change of phase that [Decide]
// makes is one of its rows. Of several rows that fit, the first counts. The table
// is the caller's to change.
func Transitions() []Transition {
	table := slices.Clone(transitions)
	for i := range table {
		table[i].From = slices.Clone(table[i].From)
	}
	return table
}

// NextPhase returns the row by which a machine in the phase from, to which t
// happens, changes its phase, and false if it stays. holds says which guards
// hold; nil means none but the empty one.
func NextPhase(from v1alpha1.MachinePhase, t Trigger, holds func(Guard) bool) (Transition, bool) {
	for _, row := range transitions {
		if row.Trigger == t && (row.From == nil || slices.Contains(row.From, from)) &&
			(row.Guard == "" || holds != nil && holds(row.Guard)) {
			row.From = slices.Clone(row.From)
			return row, true
		}
	}
	return Transition{}, false
}

// moves says whether the phase changes if t happens.
func (l *life) moves(t Trigger) bool {
	_, ok := NextPhase(l.m.Status.CurrentStatus.Phase, t, l.holds)
	return ok
}

// move returns a decision that writes the change of phase which follows from t,
// and what change makes of the status besides. Without a row in the table the
// phase stays, and with it when it was entered: from then timeouts count.
func (l *life) move(t Trigger, change func(*v1alpha1.MachineStatus)) Decision {
	row, ok := NextPhase(l.m.Status.CurrentStatus.Phase, t, l.holds)
	return l.record(machinist.Reason(cmp.Or(string(row.Reason), string(t))), func(s *v1alpha1.MachineStatus) {
		change(s)
		if ok && (row.To != s.CurrentStatus.Phase || s.CurrentStatus.LastUpdateTime.IsZero()) {
			l.enter(s, row.To)
		}
	})
}

// holds says whether a guard holds for the machine.
func (l *life) holds(g Guard) bool {
	switch g {
	case "":
		return true
	case GuardTarget:
		return !l.in.Node.NoTarget
	case GuardNoTarget:
		return l.in.Node.NoTarget
	case GuardBegun:
		return l.intended()
	case GuardIdentified:
		return !l.in.Node.NoTarget && l.m.Spec.ProviderID != ""
	case GuardNotCritical:
		return l.in.Node.Node != nil && !criticalTaint(l.in.Node.Node)
	case GuardPreserved:
		return l.m.Status.CurrentStatus.PreserveExpiryTime != nil
	case GuardReadyAgain:
		return l.readyAgain()
	case GuardReplaceable:
		_, waits := l.replacement()
		return !waits
	default:
		return false
	}
}
