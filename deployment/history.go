// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// HistoryCleanup returns which old sets are not kept as history any more,
// oldest first. Of the sets that are not being deleted the youngest limit ones
// are kept; of the others those go that neither ask for nor have machines, and
// that have seen their latest spec. A nil limit keeps all, a negative one is
// read as 0.
func HistoryCleanup(old []*v1alpha1.MachineSet, limit *int32) []*v1alpha1.MachineSet {
	if limit == nil {
		return nil
	}
	candidates := slices.DeleteFunc(byCreation(old), func(s *v1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil })
	surplus := len(candidates) - int(max(0, *limit))
	if surplus <= 0 {
		return nil
	}
	return slices.DeleteFunc(candidates[:surplus], func(s *v1alpha1.MachineSet) bool {
		return s.Spec.Replicas != 0 || s.Status.Replicas != 0 || !observed(s)
	})
}

// observed says whether the status of a set is of its present spec.
func observed(s *v1alpha1.MachineSet) bool {
	return s.Status.ObservedGeneration >= s.Generation
}
