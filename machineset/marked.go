// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// markedPriority is the priority by which an autoscaler names a machine. It is
// compared as text, as the reference system does.
const markedPriority = "1"

// MarkedAt returns when an autoscaler marked a machine for deletion, and false
// if it carries no readable mark or is nil.
func MarkedAt(m *v1alpha1.Machine) (time.Time, bool) {
	if m == nil {
		return time.Time{}, false
	}
	return parseTime(m.Annotations, v1alpha1.MarkedForDeletionTime)
}

// LastScaleByAutoscaler returns when an autoscaler last changed the size of a
// set's deployment, and false if that is not readable or the set is nil.
func LastScaleByAutoscaler(set *v1alpha1.MachineSet) (time.Time, bool) {
	if set == nil {
		return time.Time{}, false
	}
	return parseTime(set.Annotations, v1alpha1.LastDeploymentReplicaChangeByScalerTime)
}

// NamedByAutoscaler reports whether an autoscaler named this machine as one that
// goes: its priority is exactly "1", and it was marked no later than the last
// change of size that an autoscaler made. Such a machine is deleted even if the
// set is no longer too large, and is replaced then: an earlier pass may have
// deleted another one in its place.
//
// A mark that is younger than the last change of size belongs to a change that
// has not arrived yet. Nil arguments give false.
func NamedByAutoscaler(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	if m == nil || m.Annotations[v1alpha1.MachinePriority] != markedPriority {
		return false
	}
	marked, ok := MarkedAt(m)
	if !ok {
		return false
	}
	scaled, ok := LastScaleByAutoscaler(set)
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
