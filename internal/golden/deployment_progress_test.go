// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/deployment"
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

func deploymentProgress(in deploymentProgressIn, out deploymentProgressOut) ([]string, error) {
	d := &v1alpha1.MachineDeployment{}
	d.Generation, d.Spec.Replicas, d.Spec.ProgressDeadlineSeconds = in.Generation, in.Replicas, in.ProgressDeadlineSeconds
	to := in.NewStatus
	if c := in.ProgressingCondition; c != nil {
		c.Type = "Progressing"
		to.Conditions = append(to.Conditions, *c)
	}
	status := to.ofDeployment()
	return nil, same("progress", out, deploymentProgressOut{
		deployment.Complete(d, status), deployment.Progressing(in.OldStatus.ofDeployment(), status), deployment.TimedOut(d, status, now),
	})
}
