// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"slices"
)

// Escalations returns the rows of the table of escalations.
func Escalations() []Escalation { return slices.Sorted(maps.Keys(escalations)) }

// Rules returns the fields of Policy in the table of rules.
func Rules() []string {
	var fields []string
	for _, rule := range rules {
		fields = append(fields, rule.field)
	}
	return fields
}

// The types of the fields of State.
type (
	PodState    = podState
	VolumeState = volumeState
	ReachedRung = reachedRung
	Response    = response
)
