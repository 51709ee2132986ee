// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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

// leads reports whether the table has a row for the phase and the reason, whatever its guard.
func leads(phase v1alpha1.MachinePhase, why machinist.Reason) bool {
	for i := range transitions {
		if row := &transitions[i]; row.why == why && slices.Contains(row.from, phase) {
			return true
		}
	}
	return false
}
