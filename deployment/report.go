// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ReportFrom returns from when a hold of a deployment is reported, for [machinist.Waits]: when it is
// stuck, counted from the last progress of the rollout, because the same hold may last for hours during a
// long one. A hold that a user or a program beside the controller has to end is reported as soon as it lasts.
// It returns zero for a hold that may last: one that a user has asked for, that has a condition of its own,
// or that ends at a known time.
func (Decision) ReportFrom(d *v1alpha1.MachineDeployment, h machinist.Hold, now time.Time) time.Time {
	var progress time.Time
	switch h.Reason {
	case ReasonInvalid, ReasonSelectsNothing, ReasonPaused, ReasonFrozen:
		return progress
	case reasonNameTaken, reasonNoCapacity, reasonNoCluster, reasonNotSelected, reasonNotOurs, reasonGate:
		return h.LastsFrom()
	}
	if d == nil {
		return progress
	}
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			progress = c.LastUpdateTime.Time
		}
	}
	return members.ReportFrom(h, progress, now)
}
