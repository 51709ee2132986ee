// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"strconv"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// PriorityOf returns the priority annotation of a machine: lower goes first, and
// negative numbers are allowed. Missing, empty and unreadable annotations mean
// [v1alpha1.DefaultMachinePriority], as a nil machine does.
func PriorityOf(m *v1alpha1.Machine) int {
	if m == nil {
		return v1alpha1.DefaultMachinePriority
	}
	text, found := m.Annotations[v1alpha1.MachinePriority]
	if !found {
		return v1alpha1.DefaultMachinePriority
	}
	priority, err := strconv.Atoi(text)
	if err != nil {
		return v1alpha1.DefaultMachinePriority
	}
	return priority
}
