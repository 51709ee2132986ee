// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// delete takes the deployment down: all sets first, then the finalizer. Sets that
// are to outlive it, because it is deleted with --cascade=orphan, stay until the
// garbage collector has taken it from their owners; the reference system deletes
// them.
func (c *pass) delete() {
	sets := byCreation(c.in.Sets)
	switch {
	case !slices.Contains(c.d.Finalizers, v1alpha1.MCMFinalizerName):
		c.stop(ReasonDeleted, "being deleted; nothing is left to do here")
	case len(sets) == 0:
		c.out.Reason = ReasonDeleting
		c.d.Finalizers = slices.DeleteFunc(c.d.Finalizers, func(f string) bool { return f == v1alpha1.MCMFinalizerName })
		c.editDeployment("no set is left")
	case slices.Contains(c.d.Finalizers, metav1.FinalizerOrphanDependents):
		c.out.Reason = ReasonDeleting
		c.hold(sets[0].Name, ReasonDeleting, fmt.Sprintf("%d sets are to outlive the deployment and still belong to it", len(sets)))
		c.counters()
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
