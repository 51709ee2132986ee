// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Texts of the Available condition.
const (
	availableMessage   = "Deployment has minimum availability."
	unavailableMessage = "Deployment does not have minimum availability."
)

// Status returns the status of a deployment that follows from its sets: the
// counters, the failed machines and the Available condition. The other
// conditions and the collision count are carried over. What a roll-out adds to
// it is the business of [RolloutStatus]. The result shares no memory with the
// arguments; nil sets are skipped and a nil deployment has a zero status.
func Status(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time) v1alpha1.MachineDeploymentStatus {
	if d == nil {
		return v1alpha1.MachineDeploymentStatus{}
	}
	carried := d.Status.DeepCopy()
	out := v1alpha1.MachineDeploymentStatus{
		ObservedGeneration: d.Generation,
		CollisionCount:     carried.CollisionCount,
		FailedMachines:     []*v1alpha1.MachineSummary{},
	}
	var asked, replicas, ready, available, preserved int64
	for _, s := range append(slices.Clip(old), newSet) {
		if s == nil {
			continue
		}
		asked += int64(s.Spec.Replicas)
		replicas += int64(s.Status.Replicas)
		ready += int64(s.Status.ReadyReplicas)
		available += int64(s.Status.AvailableReplicas)
		preserved += int64(s.Status.PreservedFailedReplicas)
		if s.Status.FailedMachines != nil {
			for _, m := range *s.Status.FailedMachines {
				out.FailedMachines = append(out.FailedMachines, m.DeepCopy())
			}
		}
	}
	out.Replicas, out.ReadyReplicas = narrow(replicas), narrow(ready)
	out.AvailableReplicas, out.PreservedFailedReplicas = narrow(available), narrow(preserved)
	if newSet != nil {
		out.UpdatedReplicas = newSet.Status.Replicas
	}
	out.UnavailableReplicas = narrow(max(0, asked-int64(out.AvailableReplicas)))
	out.Conditions = withCondition(carried.Conditions, availability(d, out, now))
	return out
}

func availability(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus, now time.Time) v1alpha1.MachineDeploymentCondition {
	least := int64(d.Spec.Replicas) - int64(MaxUnavailable(d)) - int64(s.PreservedFailedReplicas)
	if int64(s.AvailableReplicas) >= max(0, least) {
		return newCondition(v1alpha1.MachineDeploymentAvailable, v1alpha1.ConditionTrue, v1alpha1.MinimumReplicasAvailable, availableMessage, now)
	}
	return newCondition(v1alpha1.MachineDeploymentAvailable, v1alpha1.ConditionFalse, v1alpha1.MinimumReplicasUnavailable, unavailableMessage, now)
}
