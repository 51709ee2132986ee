// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// delete takes the deployment down: all sets first, then the finalizer.
func (c *pass) delete() {
	sets := byCreation(c.in.Sets)
	switch {
	case !slices.Contains(c.d.Finalizers, v1alpha1.MCMFinalizerName):
		c.stop(ReasonDeleted, "being deleted; nothing is left to do here")
	case len(sets) == 0:
		c.out.Reason = ReasonDeleting
		c.add(RemoveFinalizer{Finalizer: v1alpha1.MCMFinalizerName})
	default:
		c.out.Reason = ReasonDeleting
		for _, s := range sets {
			if s.DeletionTimestamp == nil {
				c.add(DeleteSet{Name: s.Name, UID: s.UID, Message: "its deployment is being deleted"})
			} else {
				c.hold(s.Name, ReasonSetDeleting, fmt.Sprintf("%d machines are left", s.Status.Replicas))
			}
		}
		c.counters()
	}
}

// cleanUp deletes the old sets that are not kept as history.
func (c *pass) cleanUp() {
	for _, s := range HistoryCleanup(c.old, c.d.Spec.RevisionHistoryLimit) {
		c.add(DeleteSet{
			Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
			Message: fmt.Sprintf("empty, and older than the %d to keep", max(0, *c.d.Spec.RevisionHistoryLimit)),
		})
	}
}
