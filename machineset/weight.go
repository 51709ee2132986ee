// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"strconv"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Weight orders phases by how little is lost when a machine goes, from 0.
//
//	0  Terminating, and any phase with a deletion timestamp
//	1  Failed
//	2  InPlaceUpdateFailed: drained, and of use to nobody
//	3  CrashLoopBackOff
//	4  Unknown
//	5  the empty phase: not processed yet
//	6  Pending
//	7  InPlaceUpdating
//	8  Available
//	9  Running, InPlaceUpdateSuccessful, and phases unknown to this package
//
// The reference system gives weight 0 to the empty phase and to all phases of an
// in-place update, and so deletes freshly updated machines before Failed ones.
// Its order of the other phases is kept. A nil machine weighs 9.
func Weight(m *v1alpha1.Machine) int {
	const heaviest = 9
	if m == nil {
		return heaviest
	}
	if Leaving(m) {
		return 0
	}
	switch m.Status.CurrentStatus.Phase {
	case v1alpha1.MachineFailed:
		return 1
	case v1alpha1.MachineInPlaceUpdateFailed:
		return 2
	case v1alpha1.MachineCrashLoopBackOff:
		return 3
	case v1alpha1.MachineUnknown:
		return 4
	case "":
		return 5
	case v1alpha1.MachinePending:
		return 6
	case v1alpha1.MachineInPlaceUpdating:
		return 7
	case v1alpha1.MachineAvailable:
		return 8
	default:
		return heaviest
	}
}

// PriorityOf returns the priority annotation of a machine: lower goes first, and
// negative numbers are allowed. Missing, empty and unreadable annotations mean
// [v1alpha1.DefaultMachinePriority], as a nil machine does.
func PriorityOf(m *v1alpha1.Machine) int {
	if m == nil {
		return v1alpha1.DefaultMachinePriority
	}
	text, found := m.Annotations[v1alpha1.MachinePriority]
	if !found {
		return v1alpha1.DefaultMachinePriority
	}
	priority, err := strconv.Atoi(text)
	if err != nil {
		return v1alpha1.DefaultMachinePriority
	}
	return priority
}
