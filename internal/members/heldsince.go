// SPDX-License-Identifier: Apache-2.0

package members

import (
	"time"

	"github.com/machinist-dev/machinist"
)

// HeldSince returns the time from which the age of a hold counts: its begin, or the last progress of
// its object if that is later and not in the future. It returns zero for a hold that ends at a known
// time.
func HeldSince(h machinist.Hold, progress, now time.Time) time.Time {
	switch {
	case h.Until.After(now):
		return time.Time{}
	case progress.After(h.Since) && !progress.After(now):
		return progress
	default:
		return h.Since
	}
}
