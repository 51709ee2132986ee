// SPDX-License-Identifier: Apache-2.0

// Package recorded judges times that were written down earlier. They may come from a
// clock that is ahead of the reader's, or from a person, so they may lie in the future.
package recorded

import "time"

// Known reports whether something can have happened at t: t is set, and is not after
// now. What waits for a time after t begins to wait anew if t is not known.
func Known(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }

// At returns t, or now if t is after now.
func At(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}
