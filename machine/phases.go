// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// PhaseTraits are the properties of a phase that decisions use. A new phase needs a row in the
// table of traits, and rows in the table of transitions.
type PhaseTraits struct {
	// Rank is the order of scale-down: machines with the lowest rank are deleted first.
	Rank int
	// Available means that the VM runs, and that its Node is healthy if there is a target cluster.
	Available bool
	// Updating means that the Node takes part in an in-place update that has not failed.
	Updating bool
	// Trouble means that the machine needs attention.
	Trouble bool

	// serving means that the machine does not count as being replaced.
	serving bool
	// mayFail means that the cache may not show yet that the machine failed.
	mayFail bool
	// searched means that the VM is looked up while its Node is missing or not ready.
	searched bool
}

// highestRank is the rank of the phases whose machines serve, and of unknown phases.
const highestRank = 9

// phaseTraits is the table of phases. A new machine has the empty phase. The order is that of MCM,
// except for the empty phase and the phases of in-place updates, which have rank 0 in MCM.
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

// TraitsOf returns the traits of a phase. An unknown phase has the highest rank and no other trait.
func TraitsOf(phase v1alpha1.MachinePhase) PhaseTraits {
	if traits, exists := phaseTraits[phase]; exists {
		return traits
	}
	return PhaseTraits{Rank: highestRank}
}

// PhaseRank returns the rank of a machine for scale-down by its phase: see [PhaseTraits]. It is 0
// with a deletion timestamp. A nil machine has the highest rank.
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

// guard is a condition of a row in the table of transitions. It is not a function, because
// functions in the table would keep each decision on the heap.
type guard uint8

const (
	always guard = iota
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
	// guard is the condition of the row.
	guard guard
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
	{nil, ReasonStatusInvalid, ifWithoutTarget, v1alpha1.MachineAvailable},
	{updated, ReasonStatusInvalid, always, v1alpha1.MachineUnknown},
	{nil, ReasonStatusInvalid, ifHasNode, v1alpha1.MachineUnknown},
	{nil, ReasonStatusInvalid, always, v1alpha1.MachineCrashLoopBackOff},
}

// leads reports whether the table has a row for the phase and the reason, whatever its guard.
func leads(phase v1alpha1.MachinePhase, why machinist.Reason) bool {
	for i := range transitions {
		if row := &transitions[i]; row.why == why && slices.Contains(row.from, phase) {
			return true
		}
	}
	return false
}
