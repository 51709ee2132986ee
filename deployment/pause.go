// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// withPause returns the stored conditions with a pause or its end written down.
// A roll-out that missed its deadline stays so.
func withPause(d *v1alpha1.MachineDeployment, now time.Time) []v1alpha1.MachineDeploymentCondition {
	reason := ""
	if c := GetCondition(d.Status, v1alpha1.MachineDeploymentProgressing); c != nil {
		reason = c.Reason
	}
	note := func(reason, message string) []v1alpha1.MachineDeploymentCondition {
		return withCondition(d.Status.Conditions, newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionUnknown, reason, message, now))
	}
	switch {
	case reason == v1alpha1.ProgressDeadlineExceeded:
	case d.Spec.Paused && reason != v1alpha1.DeploymentPaused:
		return note(v1alpha1.DeploymentPaused, "Deployment is paused")
	case !d.Spec.Paused && reason == v1alpha1.DeploymentPaused:
		return note(v1alpha1.DeploymentResumed, "Deployment is resumed")
	}
	return d.Status.Conditions
}
