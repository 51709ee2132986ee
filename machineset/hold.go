// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"time"
)

// A Hold says what is not being done now, and why.
type Hold struct {
	// Subject names the machine, or the set, that stands in the way.
	Subject string
	// Reason is one of those documented as reasons of a hold.
	Reason Reason
	// Message is for people; its text may change.
	Message string
	// Until is when to look again; zero if only a change of the subject helps.
	Until time.Time
}

// String implements [fmt.Stringer].
func (h Hold) String() string {
	if h.Message == "" {
		return fmt.Sprintf("%s: %s", h.Subject, h.Reason)
	}
	return fmt.Sprintf("%s: %s (%s)", h.Subject, h.Reason, h.Message)
}
