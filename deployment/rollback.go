// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// rollBack restores the template of an earlier revision. It comes first, so that a template that is
// withdrawn at once gets no set. The old set that becomes the new one is unmarked in the same pass.
//
// The observed generation stays until the deployment is written. Otherwise a client that waits for
// the rollback could take the former state for its end.
func (c *pass) rollBack() {
	c.out.Reason = reasonRollingBack
	c.out.Status.ObservedGeneration = c.in.Deployment.Status.ObservedGeneration
	to, message := rollbackTarget(c.d, c.in.Sets)
	c.d.Spec.RollbackTo = nil
	switch {
	case to == nil:
		c.notRolledBack(eventRevisionNotFound, message)
		return
	case EqualIgnoreHash(c.d.Spec.Template, to.Spec.Template):
		c.unmark(c.ledger.of(to))
		c.notRolledBack(eventTemplateUnchanged, fmt.Sprintf("The rollback revision contains the same template as current deployment %q", c.d.Name))
		return
	}
	c.unmark(c.ledger.of(to))
	to.Spec.Template.DeepCopyInto(&c.d.Spec.Template)
	delete(c.d.Spec.Template.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	c.d.Annotations = rolledBack(c.d.Annotations, to.Annotations)
	reached, _ := rollout.ParseRevision(to.Annotations[v1alpha1.RevisionAnnotation])
	message = fmt.Sprintf("Rolled back deployment %q to revision %d", c.d.Name, reached)
	c.report = &machinist.Event{Type: eventNormal, Reason: eventRolledBack, Message: message}
	c.editDeployment(message)
}

// notRolledBack holds a rollback that is not possible.
func (c *pass) notRolledBack(event machinist.Reason, message string) {
	c.report = &machinist.Event{Type: eventWarning, Reason: event, Message: message}
	c.hold("machinedeployment/"+c.d.Name, reasonNoRollback, message)
	c.editDeployment("the rollback is not possible: " + message)
}

// rollbackTarget returns the set with the revision of the rollback: the oldest of the old sets, or
// else the new one. Revision 0 means [LastRevision]. Without such a set it returns the error as
// text.
func rollbackTarget(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet) (*v1alpha1.MachineSet, string) {
	revision := d.Spec.RollbackTo.Revision
	if revision == 0 {
		if revision = LastRevision(sets); revision == 0 {
			return nil, "Unable to find last revision."
		}
	}
	newSet, old := FindSets(d, sets)
	for _, s := range append(slices.Clip(old), newSet) {
		if s == nil {
			continue
		}
		if n, ok := rollout.ParseRevision(s.Annotations[v1alpha1.RevisionAnnotation]); ok && n == revision {
			return s, ""
		}
	}
	return nil, "Unable to find the revision to rollback to."
}

// rolledBack returns the annotations of a deployment after a rollback to a set. Annotations that
// belong to one object stay, and so does the time of the last change of the replicas by an
// autoscaler.
func rolledBack(of, from map[string]string) map[string]string {
	out := maps.Clone(from)
	maps.DeleteFunc(out, func(k, _ string) bool { return rollout.OwnAnnotation(k) })
	for k, v := range of {
		if rollout.OwnAnnotation(k) || k == v1alpha1.LastDeploymentReplicaChangeByScalerTime {
			out[k] = v
		}
	}
	return out
}
