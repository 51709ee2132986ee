// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Events returns the Events for the change of a machine from before to after, oldest first: trouble
// and its end as a new phase, an operation that failed for a new reason, invalid fields, and what it
// waits for if no other Event says that. A changed text, changed conditions of the Node and a repeated
// failure cause no Event. A machine without failures has none: its status shows that its VM exists,
// that it runs, and that it is being deleted.
//
// A nil before, or one with another UID, is a new machine. For a nil after it returns nil. MCM
// reports no Events about machines.
func Events(before, after *v1alpha1.Machine) []machinist.Event {
	events := facts.Events(before, after)
	if len(events) > 0 || after == nil {
		return events
	}
	if e, waits := waitEvent(before, after); waits {
		events = append(events, e)
	}
	return events
}
