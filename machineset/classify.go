// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Leaving reports whether a machine is visibly on its way out: its phase is
// Terminating, or it has a deletion timestamp. The reference system looks at the
// phase alone, and so counts a machine that was deleted a moment ago as present.
// A nil machine is leaving.
func Leaving(m *v1alpha1.Machine) bool {
	return m == nil || m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating
}

// Active reports whether a machine is neither Failed nor Terminating. Changes of
// the template reach active machines only. A nil machine is not active.
func Active(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.CurrentStatus.Phase != v1alpha1.MachineFailed &&
		m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating
}

// Ready reports whether a machine is Running. A nil machine is not.
func Ready(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning
}

// Available reports whether a machine is Running, or Available (which is what
// machines become where there is no cluster to join). A nil machine is not.
func Available(m *v1alpha1.Machine) bool {
	return m != nil && machine.TraitsOf(m.Status.CurrentStatus.Phase).Available
}

// Failed reports whether the phase of a machine is Failed. A nil machine is not.
func Failed(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed
}

// Preserved reports whether a machine is preserved at the instant now: its
// preservation has been recorded and ends later. A nil machine is not.
func Preserved(m *v1alpha1.Machine, now time.Time) bool {
	return m != nil && m.Status.CurrentStatus.PreserveExpiryTime != nil &&
		now.Before(m.Status.CurrentStatus.PreserveExpiryTime.Time)
}

// PreservedFailed reports whether a machine is Failed and has a preservation
// recorded, be it over or not: it counts towards the status of its set as such
// until the machine controller clears the record. A nil machine is not.
func PreservedFailed(m *v1alpha1.Machine) bool {
	return Failed(m) && m.Status.CurrentStatus.PreserveExpiryTime != nil
}

// AutoPreserved reports whether a machine carries the annotation value by which
// a set preserves Failed machines of its own accord. A nil machine does not.
func AutoPreserved(m *v1alpha1.Machine) bool {
	return m != nil && m.Annotations[v1alpha1.PreserveMachineAnnotationKey] ==
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
}

// Transferred reports whether a machine has been updated in place and is about
// to move to the set of the new generation. It still counts as present and is
// never chosen for deletion. A nil machine is not.
func Transferred(m *v1alpha1.Machine) bool {
	return m != nil && m.Labels[v1alpha1.LabelKeyNodeUpdateResult] == v1alpha1.LabelValueNodeUpdateSuccessful
}

// Unhealthy reports whether a machine became Failed for bad health, rather than
// because it never joined: what metrics call a stale machine. A nil machine is
// not.
func Unhealthy(m *v1alpha1.Machine) bool {
	return Failed(m) && m.Status.LastOperation.Type == v1alpha1.MachineOperationHealthCheck
}

// Frozen reports whether the freeze label keeps a set from creating machines.
// The value has to be exactly "True". A set that is being deleted, or nil, is
// not frozen.
func Frozen(set *v1alpha1.MachineSet) bool {
	return set != nil && set.DeletionTimestamp == nil && set.Labels[v1alpha1.FreezeLabelKey] == "True"
}

// ScaleUpDisabled reports whether a label, whatever its value, keeps a set from
// creating machines, as old sets of an in-place update are. A nil set is not.
func ScaleUpDisabled(set *v1alpha1.MachineSet) bool {
	if set == nil {
		return false
	}
	_, found := set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled]
	return found
}
