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

// available reports whether a machine is Running, or Available (which is what
// machines become where there is no cluster to join). A nil machine is not.
func available(m *v1alpha1.Machine) bool {
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

// preservedFailed reports whether a machine is Failed and has a preservation
// recorded, be it over or not: it counts towards the status of its set as such
// until the machine controller clears the record.
func preservedFailed(m *v1alpha1.Machine) bool {
	return Failed(m) && m.Status.CurrentStatus.PreserveExpiryTime != nil
}

// autoPreserved reports whether a machine carries the annotation value by which
// a set preserves Failed machines of its own accord.
func autoPreserved(m *v1alpha1.Machine) bool {
	return m.Annotations[v1alpha1.PreserveMachineAnnotationKey] == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
}

// shortLife is how long a machine lives that is worth its creation. It is shorter
// than machines take to time out when they are created or fall ill, so that only
// those count which fail for a reason that no timeout slows down.
const shortLife = 10 * time.Minute

// shortLived reports whether a machine was deleted so soon after its creation.
func shortLived(m *v1alpha1.Machine) bool {
	return m.DeletionTimestamp != nil && m.DeletionTimestamp.Sub(m.CreationTimestamp.Time) < shortLife
}

// Transferred reports whether a machine has been updated in place and is about
// to move to the set of the new generation. It still counts as present and is
// never chosen for deletion. A nil machine is not.
func Transferred(m *v1alpha1.Machine) bool {
	return m != nil && m.Labels[v1alpha1.LabelKeyNodeUpdateResult] == v1alpha1.LabelValueNodeUpdateSuccessful
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

// MarkedAt returns when an autoscaler marked a machine for deletion, and false
// if it carries no readable mark or is nil.
func MarkedAt(m *v1alpha1.Machine) (time.Time, bool) {
	if m == nil {
		return time.Time{}, false
	}
	return parseTime(m.Annotations, v1alpha1.MarkedForDeletionTime)
}

// markedPriority is the priority by which an autoscaler names a machine. It is
// compared as text, as the reference system does.
const markedPriority = "1"

// NamedByAutoscaler reports whether an autoscaler named this machine as one that
// goes: its priority is exactly "1", and it was marked no later than the last
// change of size that an autoscaler made. Such a machine is deleted even if the
// set is no longer too large, and is replaced then: an earlier pass may have
// deleted another one in its place.
//
// A mark that is younger than the last change of size belongs to a change that
// has not arrived yet. Nil arguments give false.
func NamedByAutoscaler(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	if set == nil || m == nil || m.Annotations[v1alpha1.MachinePriority] != markedPriority {
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
