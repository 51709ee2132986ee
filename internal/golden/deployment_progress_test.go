// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type deploymentProgressIn struct {
	Generation              int64
	NewStatus, OldStatus    status
	ProgressDeadlineSeconds *int32
	ProgressingCondition    *condition
	Replicas                int32
}

type deploymentProgressOut struct{ Complete, Progressing, TimedOut bool }

// deploymentProgress reads the three results from the status of a rollout whose sets have the new
// counters. A rollout with a pending rollback is not complete, so that it shows the other results.
func deploymentProgress(in deploymentProgressIn, out deploymentProgressOut) ([]string, error) {
	d := &v1alpha1.MachineDeployment{}
	d.Generation, d.Spec.Replicas, d.Spec.ProgressDeadlineSeconds = in.Generation, in.Replicas, in.ProgressDeadlineSeconds
	to := in.NewStatus.ofDeployment()
	got := deploymentProgressOut{Complete: deployment.Complete(d, to)}
	newSet, old := &v1alpha1.MachineSet{}, &v1alpha1.MachineSet{}
	newSet.Status.Replicas, old.Status.Replicas = to.UpdatedReplicas, to.Replicas-to.UpdatedReplicas
	old.Status.ReadyReplicas, old.Status.AvailableReplicas = to.ReadyReplicas, to.AvailableReplicas
	d.Spec.RollbackTo = &v1alpha1.RollbackConfig{}
	reason := func(d *v1alpha1.MachineDeployment) string {
		s, _ := rollout.Status(d, newSet, []*v1alpha1.MachineSet{old}, now, true)
		if c := conditionOf(s, v1alpha1.MachineDeploymentProgressing); c != nil {
			return c.Reason
		}
		return ""
	}
	d.Status = in.OldStatus.ofDeployment()
	got.Progressing = reason(d) == v1alpha1.MachineSetUpdated
	if c := in.ProgressingCondition; c != nil {
		c.Type = "Progressing"
		from := in.NewStatus // nothing has moved
		from.Conditions = append(from.Conditions, *c)
		d.Status = from.ofDeployment()
		// Without a deadline a condition of an earlier one stays.
		got.TimedOut = in.ProgressDeadlineSeconds != nil && reason(d) == v1alpha1.ProgressDeadlineExceeded
	}
	return nil, same("progress", out, got)
}
