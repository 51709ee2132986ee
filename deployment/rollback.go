// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Revision is a template that a deployment has, or that it can be rolled back to.
type Revision struct {
	// Number is the revision of the set.
	Number int64
	// Set is the set with the template.
	Set *v1alpha1.MachineSet
	// Current means that it is the template of the deployment.
	Current bool
}

// Revisions returns the revisions of a deployment, lowest first. Sets without a revision and nil sets
// are skipped.
func Revisions(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet) []Revision {
	newSet, _ := rollout.FindSets(d, sets)
	var out []Revision
	for _, s := range rollout.ByCreation(sets) {
		if n, ok := rollout.ParseRevision(s.Annotations[v1alpha1.RevisionAnnotation]); ok && n > 0 {
			out = append(out, Revision{Number: n, Set: s, Current: s == newSet})
		}
	}
	slices.SortStableFunc(out, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// errRollBack is wrapped by the errors of [RollBack].
var errRollBack = errors.New("cannot roll back")

// RollBack returns a copy of a deployment with a request for a rollback to a revision. Zero means
// the second highest. Update the deployment with the copy; the next decision restores the template.
//
// It returns an error for a nil deployment, for a paused one, whose template stays as it is, for a
// revision that no set has, and for the template that the deployment already has.
func RollBack(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet, revision int64) (*v1alpha1.MachineDeployment, error) {
	switch {
	case d == nil:
		return nil, fmt.Errorf("%w: no deployment", errRollBack)
	case d.Spec.Paused:
		return nil, fmt.Errorf("%w: machinedeployment %s is paused", errRollBack, d.Name)
	case revision < 0:
		return nil, fmt.Errorf("%w: revision %d is negative", errRollBack, revision)
	}
	next := d.DeepCopy()
	next.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: revision}
	to, _ := rollbackTarget(next, sets)
	var known []string
	for _, r := range Revisions(d, sets) {
		known = append(known, strconv.FormatInt(r.Number, 10))
	}
	switch {
	case to == nil && revision == 0:
		return nil, fmt.Errorf("%w: machinedeployment %s has no earlier revision", errRollBack, d.Name)
	case to == nil:
		return nil, fmt.Errorf("%w: machinedeployment %s has no revision %d, but %s", errRollBack, d.Name, revision, strings.Join(known, ", "))
	case rollout.EqualIgnoreHash(d.Spec.Template, to.Spec.Template):
		return nil, fmt.Errorf("%w: machinedeployment %s has the template of revision %s already", errRollBack, d.Name, to.Annotations[v1alpha1.RevisionAnnotation])
	}
	return next, nil
}

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
	case rollout.EqualIgnoreHash(c.d.Spec.Template, to.Spec.Template):
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
// else the new one. Revision 0 means the second highest. Without such a set it returns the error as
// text.
func rollbackTarget(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet) (*v1alpha1.MachineSet, string) {
	revision := d.Spec.RollbackTo.Revision
	if revision == 0 {
		if _, revision = rollout.TopRevisions(sets); revision == 0 {
			return nil, "Unable to find last revision."
		}
	}
	newSet, old := rollout.FindSets(d, sets)
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
