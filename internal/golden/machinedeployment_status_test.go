// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	d, sets := in.MachineDeployment.object(), setsOf(append(slices.Clip(in.OldMSs), &machineSet{Name: "empty"}))
	if newSet := in.NewMS.object(); newSet != nil {
		newSet.Spec.Template, sets = d.Spec.Template, append(sets, newSet)
	}
	for _, s := range sets[:len(in.OldMSs)+1] {
		s.Spec.Template.Spec.Class.Name = "old"
	}
	d.Finalizers, d.DeletionTimestamp = []string{v1alpha1.MCMFinalizerName}, &metav1.Time{Time: now} // no rollout adds to the status
	before := d.DeepCopy()
	s := deployment.Decide(deployment.Observation{Deployment: d, Sets: sets, Complete: true, Proven: true}, deployment.Policy{}, now).Status
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
