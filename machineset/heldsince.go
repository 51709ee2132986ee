// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// HeldSince returns the time from which the age of a hold of a set counts, for [machinist.Waits]: the
// last progress, because the same hold may last for hours while many machines are created. It returns
// zero for a hold that may last: one that a user has asked for, or that ends at a known time.
func (Decision) HeldSince(set *v1alpha1.MachineSet, h machinist.Hold, now time.Time) time.Time {
	if set == nil || h.Reason == ReasonInvalid || h.Reason == ReasonPreserved {
		return time.Time{}
	}
	return members.HeldSince(h, set.Status.LastOperation.LastUpdateTime.Time, now)
}
