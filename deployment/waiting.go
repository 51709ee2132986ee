// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// waiting holds every set that has not done yet what it was told, so that a
// decision which does nothing says what it waits for.
func (c *pass) waiting() {
	for _, s := range byCreation(c.in.Sets) {
		isNew := c.newSet != nil && s.UID == c.newSet.UID && s.Name == c.newSet.Name
		switch st := s.Status; {
		case s.DeletionTimestamp != nil:
			c.hold(s.Name, ReasonSetDeleting, fmt.Sprintf("%d machines are left", st.Replicas))
		case !observed(s):
			c.hold(s.Name, ReasonSetNotReported, notReported(s))
		case st.Replicas != s.Spec.Replicas:
			c.hold(s.Name, ReasonWaitingForMachines, fmt.Sprintf("%d machines exist, %d are wanted", st.Replicas, s.Spec.Replicas))
		case isNew && st.AvailableReplicas < s.Spec.Replicas:
			c.hold(s.Name, ReasonWaitingForMachines, fmt.Sprintf("%d machines are available, %d are wanted", st.AvailableReplicas, s.Spec.Replicas))
		}
	}
}

func notReported(s *v1alpha1.MachineSet) string {
	return fmt.Sprintf("generation %d is not reported on yet, the last one was %d", s.Generation, s.Status.ObservedGeneration)
}
