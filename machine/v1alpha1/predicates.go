// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// markedPriority is the value of [MachinePriority] by which an autoscaler names a Machine.
const markedPriority = "1"

// IsMachineActive reports whether a Machine is neither in phase Failed nor in phase Terminating. It
// is false for nil.
func IsMachineActive(m *Machine) bool {
	return m != nil && !IsMachineFailed(m) && m.Status.CurrentStatus.Phase != MachineTerminating
}

// IsMachineFailed reports whether a Machine is in phase Failed. It is false for nil.
func IsMachineFailed(m *Machine) bool {
	return m != nil && m.Status.CurrentStatus.Phase == MachineFailed
}

// IsMachineFailedOrTerminating reports whether a Machine is in phase Failed or Terminating, or has
// a deletion timestamp. It is false for nil.
func IsMachineFailedOrTerminating(m *Machine) bool {
	return m != nil && (m.DeletionTimestamp != nil || !IsMachineActive(m))
}

// IsMachineTriggeredForDeletion reports whether the priority of a Machine is "1", by which an
// autoscaler names the machines to delete. It is false for nil.
func IsMachineTriggeredForDeletion(m *Machine) bool {
	return m != nil && m.Annotations[MachinePriority] == markedPriority
}

// IsMachinePreservationExpired reports whether the preservation of a Machine has ended by time. It
// is false for nil and for a Machine that is not preserved.
func IsMachinePreservationExpired(m *Machine, now time.Time) bool {
	if m == nil {
		return false
	}
	expiry := m.Status.CurrentStatus.PreserveExpiryTime
	return expiry != nil && !expiry.After(now)
}
