// SPDX-License-Identifier: Apache-2.0

package members

import (
	"time"

	"github.com/machinist-dev/machinist"
)

// ReportFrom returns from when a hold is reported that usually ends by itself: when it is stuck, counted
// from its begin, or from the last progress of its object if that is later and not in the future. It returns
// zero for a hold that ends at a known time.
func ReportFrom(h machinist.Hold, progress, now time.Time) time.Time {
	switch {
	case h.Until.After(now):
		return time.Time{}
	case progress.After(h.Since) && !progress.After(now):
		h.Since = progress
	}
	return h.StuckFrom()
}
