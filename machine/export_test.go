// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Transition is a row of the table of transitions, without its condition.
type Transition struct {
	From []v1alpha1.MachinePhase
	Why  machinist.Reason
	To   v1alpha1.MachinePhase
}

// Transitions returns the table of transitions.
func Transitions() []Transition {
	var table []Transition
	for _, row := range transitions {
		table = append(table, Transition{row.from, row.why, row.to})
	}
	return table
}

// AfterRound returns the view after a pass with the result round.
func (v DrainView) AfterRound(a DrainNode, round DrainView, now time.Time) DrainView {
	return v.after(a, round, now)
}

// Unexported functions that tests call.
var (
	RenderUserData = renderUserData
	TokenOf        = tokenOf
	ErrNoUserData  = errNoUserData
)

// Presence is whether the VM of a machine exists.
type Presence = presence

// The presences of a VM.
const (
	NotLooked     = notLooked
	Absent        = absent
	Uninitialized = uninitialized
	Present       = present
	Deleted       = deleted
)
