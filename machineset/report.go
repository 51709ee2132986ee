// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ReportFrom returns from when a hold of a set is reported, for [machinist.Waits]: when it is stuck,
// counted from the last progress, because the same hold may last for hours while many machines are created.
// A hold that a user has to end is reported as soon as it lasts. It returns zero for a hold that may last: one
// that a user has asked for, or that ends at a known time.
func (Decision) ReportFrom(set *v1alpha1.MachineSet, h machinist.Hold, now time.Time) time.Time {
	switch {
	case set == nil, h.Reason == ReasonInvalid, h.Reason == ReasonPreserved:
		return time.Time{}
	case h.Reason == reasonScaleUpDisabled:
		return h.LastsFrom()
	default:
		return members.ReportFrom(h, set.Status.LastOperation.LastUpdateTime.Time, now)
	}
}
