// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// PhaseTraits is what decisions need to know of a phase of machines. A new phase is a
// row in the table of traits, and the rows of [Decide] that lead to it and from it.
type PhaseTraits struct {
	// Rank orders machines for scale-down, by how little is lost: 0 is deleted first.
	Rank int
	// Available: the VM runs, and its Node is healthy if there is a cluster to join.
	Available bool
	// Updating: the Node takes part in an update in place that has not failed.
	Updating bool
	// Trouble: the machine needs attention.
	Trouble bool

	// serving: the machine does not count as being replaced.
	serving bool
	// mayFail: that the machine was failed for bad health may be written and not show yet.
	mayFail bool
	// searched: the VM is looked for while its Node is missing or not ready.
	searched bool
}

// highestRank is the rank of phases whose machines serve, and of unknown phases.
const highestRank = 9

// phaseTraits is the table of phases. The empty phase is that of a new machine. The
// reference system gives rank 0 to the empty phase and to all phases of an update in
// place; its order of the other phases is kept.
var phaseTraits = map[v1alpha1.MachinePhase]PhaseTraits{
	v1alpha1.MachineTerminating:             {Rank: 0},
	v1alpha1.MachineFailed:                  {Rank: 1, Trouble: true},
	v1alpha1.MachineInPlaceUpdateFailed:     {Rank: 2, Trouble: true, mayFail: true},
	v1alpha1.MachineCrashLoopBackOff:        {Rank: 3, Trouble: true},
	v1alpha1.MachineUnknown:                 {Rank: 4, Trouble: true, serving: true, mayFail: true, searched: true},
	"":                                      {Rank: 5},
	v1alpha1.MachinePending:                 {Rank: 6, searched: true},
	v1alpha1.MachineInPlaceUpdating:         {Rank: 7, Updating: true},
	v1alpha1.MachineAvailable:               {Rank: 8, Available: true},
	v1alpha1.MachineRunning:                 {Rank: highestRank, Available: true, serving: true, mayFail: true},
	v1alpha1.MachineInPlaceUpdateSuccessful: {Rank: highestRank, Updating: true},
}

// TraitsOf returns the traits of a phase. A phase that does not exist has the highest
// rank and no other trait.
func TraitsOf(phase v1alpha1.MachinePhase) PhaseTraits {
	if traits, exists := phaseTraits[phase]; exists {
		return traits
	}
	return PhaseTraits{Rank: highestRank}
}

// PhaseRank returns the rank of a machine for scale-down, by its phase: see
// [PhaseTraits]. It is 0 with a deletion timestamp. A nil machine has the highest rank.
func PhaseRank(m *v1alpha1.Machine) int {
	switch {
	case m == nil:
		return highestRank
	case m.DeletionTimestamp != nil:
		return 0
	default:
		return TraitsOf(m.Status.CurrentStatus.Phase).Rank
	}
}

// guard is what has to hold for the machine so that a row counts. It is no function, as
// the table would keep every decision in the making on the heap.
type guard uint8

const (
	always guard = iota
	ifHasTarget
	ifIntended
	ifComponentsReady
	ifPreserved
	ifReadyAgain
	ifReplaceable
	ifIdentified
)

// transition is one row of the table of transitions.
type transition struct {
	// from are the phases in which the row counts. Nil is any phase.
	from []v1alpha1.MachinePhase
	// why is what happens to the machine, and the reason of the decision.
	why machinist.Reason
	// guard says when the row counts.
	guard guard
	// to is the phase that follows.
	to v1alpha1.MachinePhase
}

// The phases that rows have in common.
var (
	creating = []v1alpha1.MachinePhase{"", v1alpha1.MachineCrashLoopBackOff}
	joining  = append(slices.Clip(creating), v1alpha1.MachinePending)
	recovering = []v1alpha1.MachinePhase{
		v1alpha1.MachineUnknown, v1alpha1.MachineAvailable, v1alpha1.MachineTerminating, v1alpha1.MachineInPlaceUpdateSuccessful,
	}
	healthyPhases  = []v1alpha1.MachinePhase{v1alpha1.MachineRunning, v1alpha1.MachineTerminating, v1alpha1.MachineInPlaceUpdateSuccessful}
	unhealthyPhases  = []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdateFailed}
	updating = []v1alpha1.MachinePhase{v1alpha1.MachineInPlaceUpdating}
	updated  = append(slices.Clip(updating), v1alpha1.MachineInPlaceUpdateFailed)
)

// transitions is the table of transitions. Every change of phase that [Decide] makes is
// one of its rows. Of several rows that fit, the first counts.
var transitions = []transition{
	{creating, ReasonVMCreated, ifHasTarget, v1alpha1.MachinePending},
	{creating, ReasonVMCreated, always, v1alpha1.MachineAvailable},
	{nil, ReasonProviderFailed, always, v1alpha1.MachineCrashLoopBackOff},
	{nil, ReasonInvalid, ifIntended, v1alpha1.MachineCrashLoopBackOff},
	{nil, ReasonCreationTimeout, always, v1alpha1.MachineFailed},
	{joining, ReasonStaleNode, always, v1alpha1.MachineFailed},
	{[]v1alpha1.MachinePhase{v1alpha1.MachinePending}, ReasonNodeReady, ifComponentsReady, v1alpha1.MachineRunning},
	{recovering, ReasonNodeReady, always, v1alpha1.MachineRunning},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineFailed}, ReasonNodeReady, ifPreserved, v1alpha1.MachineRunning},
	{[]v1alpha1.MachinePhase{v1alpha1.MachineFailed}, ReasonNodeReady, ifReadyAgain, v1alpha1.MachineRunning},
	{healthyPhases, ReasonNodeUnhealthy, always, v1alpha1.MachineUnknown},
	{healthyPhases, ReasonNodeGone, always, v1alpha1.MachineUnknown},
	{unhealthyPhases, ReasonHealthTimeout, ifReplaceable, v1alpha1.MachineFailed},
	{nil, ReasonDrained, always, v1alpha1.MachineInPlaceUpdating},
	{updated, ReasonUpdateSucceeded, always, v1alpha1.MachineInPlaceUpdateSuccessful},
	{updating, ReasonUpdateFailed, always, v1alpha1.MachineInPlaceUpdateFailed},
	{updating, ReasonUpdateTimeout, always, v1alpha1.MachineInPlaceUpdateFailed},
	{nil, ReasonDeleting, always, v1alpha1.MachineTerminating},
	{updating, ReasonStatusInvalid, always, v1alpha1.MachineUnknown},
	{nil, ReasonStatusInvalid, ifIdentified, v1alpha1.MachineUnknown},
	{nil, ReasonStatusInvalid, always, v1alpha1.MachineCrashLoopBackOff},
}

// leads reports whether the table names the phase for what happens, whatever the guard.
func leads(phase v1alpha1.MachinePhase, why machinist.Reason) bool {
	for i := range transitions {
		if row := &transitions[i]; row.why == why && slices.Contains(row.from, phase) {
			return true
		}
	}
	return false
}
