// SPDX-License-Identifier: Apache-2.0

// Package members claims, counts, orders and chooses the machines of a MachineSet. Packages machineset and
// deployment use it, so that a deployment knows what its sets will do: [Count] is the only function
// that counts machines, and [Choose] the only one that chooses those to delete.
package members

import (
	"time"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Leaving reports whether a machine is being deleted: it has a deletion timestamp, or its phase is
// Terminating. (MCM looks at the phase only.) A nil machine is leaving.
func Leaving(m *v1alpha1.Machine) bool {
	return m == nil || m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating
}

// Available reports whether the phase of a machine is Running, or Available, its phase without a
// target cluster. A nil machine is not available.
func Available(m *v1alpha1.Machine) bool {
	return m != nil && facts.TraitsOf(m.Status.CurrentStatus.Phase).Available
}

// Failed reports whether the phase of a machine is Failed. A nil machine is not failed.
func Failed(m *v1alpha1.Machine) bool {
	return m != nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed
}

// Preserved reports whether a machine is preserved at now: its preserve expiry time is recorded and
// later. A nil machine is not preserved.
func Preserved(m *v1alpha1.Machine, now time.Time) bool {
	return m != nil && m.Status.CurrentStatus.PreserveExpiryTime != nil &&
		now.Before(m.Status.CurrentStatus.PreserveExpiryTime.Time)
}

// PreservedFailed reports whether a machine is Failed and has a preserve expiry time, which may be
// over.
func PreservedFailed(m *v1alpha1.Machine) bool {
	return Failed(m) && m.Status.CurrentStatus.PreserveExpiryTime != nil
}

// AutoPreserved reports whether a machine has the preserve annotation that a set writes for Failed
// machines.
func AutoPreserved(m *v1alpha1.Machine) bool {
	return m.Annotations[v1alpha1.PreserveMachineAnnotationKey] == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
}

// ShortLife is the age under which a deleted machine counts as short-lived. It is shorter than the
// creation and health timeouts, so it selects machines that fail for other reasons.
const ShortLife = 10 * time.Minute

// ShortLived reports whether a machine was deleted within ShortLife of its creation.
func ShortLived(m *v1alpha1.Machine) bool {
	return m.DeletionTimestamp != nil && m.DeletionTimestamp.Sub(m.CreationTimestamp.Time) < ShortLife
}

// Transferred reports whether a machine was updated in place and moves to the set of the new
// template. It counts as present and is not chosen for deletion. A nil machine is not transferred.
func Transferred(m *v1alpha1.Machine) bool {
	return m != nil && m.Labels[v1alpha1.LabelKeyNodeUpdateResult] == v1alpha1.LabelValueNodeUpdateSuccessful
}

// Frozen reports whether the freeze label with the value "True" keeps a set from creating machines.
// A set that is being deleted, or nil, is not frozen.
func Frozen(set *v1alpha1.MachineSet) bool {
	return set != nil && set.DeletionTimestamp == nil && set.Labels[v1alpha1.FreezeLabelKey] == "True"
}

// ScaleUpDisabled reports whether a set has the label, with any value, that keeps it from creating
// machines. Old sets of an in-place update have it. A nil set does not.
func ScaleUpDisabled(set *v1alpha1.MachineSet) bool {
	if set == nil {
		return false
	}
	_, found := set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled]
	return found
}

// MarkedAt returns when an autoscaler marked a machine for deletion. It returns false without a
// readable mark and for nil.
func MarkedAt(m *v1alpha1.Machine) (time.Time, bool) {
	if m == nil {
		return time.Time{}, false
	}
	return parseTime(m.Annotations, v1alpha1.MarkedForDeletionTime)
}

// NamedByAutoscaler reports whether an autoscaler named this machine for deletion: its priority is
// exactly "1", and it was marked no later than the last scaling of the set by an autoscaler. Such a
// machine is deleted even if the set is not too large, and then replaced, because an earlier
// decision may have deleted another machine.
//
// A mark that is younger than the last scaling belongs to a scaling that is not observed yet. Nil
// arguments return false.
func NamedByAutoscaler(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	if set == nil || m == nil || !v1alpha1.IsMachineTriggeredForDeletion(m) {
		return false
	}
	marked, ok := MarkedAt(m)
	if !ok {
		return false
	}
	scaled, ok := parseTime(set.Annotations, v1alpha1.LastDeploymentReplicaChangeByScalerTime)
	return ok && !marked.After(scaled)
}

func parseTime(annotations map[string]string, key string) (time.Time, bool) {
	text, found := annotations[key]
	if !found {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}
