// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Transition is a row of the table of transitions, without its guard.
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
