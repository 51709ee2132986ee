// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type deploymentStatusOut struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas int32
	UnavailableReplicas, PreservedFailedReplicas                int32
	ObservedGeneration                                          int64
	CollisionCount                                              *int32
	Conditions                                                  []condition
	FailedMachines                                              []string
}

func machineDeploymentStatus(in world, out deploymentStatusOut) ([]string, error) {
	d, newSet, old := in.MachineDeployment.object(), in.NewMS.object(), setsOf(in.OldMSs)
	before := d.DeepCopy()
	s := deployment.Status(d, newSet, old, now)
	if err := same("the deployment was changed", before, d); err != nil {
		return nil, err
	}
	got := deploymentStatusOut{
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, s.PreservedFailedReplicas,
		s.ObservedGeneration, s.CollisionCount, plain(s.Conditions), failedNames(s.FailedMachines),
	}
	return nil, same("status", out, got)
}

// plain are conditions without their times.
func plain(list []v1alpha1.MachineDeploymentCondition) []condition {
	var out []condition
	for _, c := range list {
		out = append(out, condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message})
	}
	return out
}

func failedNames(list []*v1alpha1.MachineSummary) []string {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}
