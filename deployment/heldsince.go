// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// HeldSince returns the time from which the age of a hold of a deployment counts, for
// [machinist.Waits]: the last progress of the rollout, because the same hold may last for hours during
// a long one. It returns zero for a hold that may last: one that a user has asked for, that has a
// condition of its own, or that ends at a known time.
func (Decision) HeldSince(d *v1alpha1.MachineDeployment, h machinist.Hold, now time.Time) time.Time {
	var progress time.Time
	switch h.Reason {
	case ReasonInvalid, ReasonSelectsNothing, ReasonPaused, ReasonFrozen:
		return progress
	}
	if d == nil {
		return progress
	}
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			progress = c.LastUpdateTime.Time
		}
	}
	return members.HeldSince(h, progress, now)
}
