// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Reasons of the events about a roll-back.
const (
	// EventRolledBack: the template is that of the revision now.
	EventRolledBack = "DeploymentRollback"
	// EventRevisionNotFound: there is no such revision.
	EventRevisionNotFound = "DeploymentRollbackRevisionNotFound"
	// EventTemplateUnchanged: the revision has the template that the deployment has.
	EventTemplateUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// Errors of [Rollback].
var (
	// ErrNoRevision: no set has the revision.
	ErrNoRevision = errors.New("no such revision")
	// ErrSameTemplate: the revision has the template that the deployment has.
	ErrSameTemplate = errors.New("the template is that of the revision already")
)

// Rollback returns a copy of a deployment that is rolled back to a revision, and
// the event to report when it has been written. Revision 0 means the one before
// the present, see [LastRevision]. The request for a roll-back is cleared in any
// case, also in the copy that comes with an error: [ErrNoRevision] or
// [ErrSameTemplate] is wrapped then, and nothing else differs. The copy is nil
// only for a nil deployment.
//
// Template and annotations become those of the set with the revision: of the old
// ones the oldest, or else the new one. What belongs to one object alone (see
// [NewSetAnnotations]) stays, as does the time when an autoscaler last changed the
// replicas, which a roll-back does not.
//
// The sets are those of the deployment, in any order. Nothing is modified.
func Rollback(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet, revision int64) (*v1alpha1.MachineDeployment, machinist.Event, error) {
	if d == nil {
		return nil, machinist.Event{}, fmt.Errorf("rolling back: %w", ErrNoRevision)
	}
	next := d.DeepCopy()
	next.Spec.RollbackTo = nil
	to, message := rollbackTarget(d, sets, revision)
	if to == nil {
		return next, machinist.Event{Type: eventWarning, Reason: EventRevisionNotFound, Message: message}, fmt.Errorf("rolling back to revision %d: %w", revision, ErrNoRevision)
	}
	if EqualIgnoreHash(d.Spec.Template, to.Spec.Template) {
		message := fmt.Sprintf("The rollback revision contains the same template as current deployment %q", d.Name)
		return next, machinist.Event{Type: eventWarning, Reason: EventTemplateUnchanged, Message: message}, fmt.Errorf("rolling back to revision %d: %w", revision, ErrSameTemplate)
	}
	to.Spec.Template.DeepCopyInto(&next.Spec.Template)
	delete(next.Spec.Template.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	next.Annotations = rolledBack(d.Annotations, to.Annotations)
	reached, _ := Revision(to)
	message = fmt.Sprintf("Rolled back deployment %q to revision %d", d.Name, reached)
	return next, machinist.Event{Type: eventNormal, Reason: EventRolledBack, Message: message}, nil
}

// rollbackTarget returns the set to go back to, or nil and what is wrong.
func rollbackTarget(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet, revision int64) (*v1alpha1.MachineSet, string) {
	if revision == 0 {
		if revision = LastRevision(sets); revision == 0 {
			return nil, "Unable to find last revision."
		}
	}
	newSet, old := FindSets(d, sets)
	for _, s := range append(slices.Clip(old), newSet) {
		if n, ok := Revision(s); ok && s != nil && n == revision {
			return s, ""
		}
	}
	return nil, "Unable to find the revision to rollback to."
}

// rolledBack returns the annotations of a deployment that was rolled back to a
// set, which has some, as its revision is one of them.
func rolledBack(of, from map[string]string) map[string]string {
	out := maps.Clone(from)
	maps.DeleteFunc(out, func(k, _ string) bool { return ownAnnotation(k) })
	for k, v := range of {
		if ownAnnotation(k) || k == v1alpha1.LastDeploymentReplicaChangeByScalerTime {
			out[k] = v
		}
	}
	return out
}

// rollBack makes the template that of an earlier revision. It comes before
// anything is created, so that a template which is given up at once gets no set.
// The set that becomes the new one loses the marks of an old one in the same pass.
// The status does not say yet that what is asked for has been taken in: that holds
// once the deployment is written, and whoever waits for the roll-back must not take
// the machines of before for its end.
func (c *pass) rollBack() {
	c.out.Reason = ReasonRollingBack
	c.out.Status.ObservedGeneration = c.in.Deployment.Status.ObservedGeneration
	revision := c.d.Spec.RollbackTo.Revision
	if target, _ := rollbackTarget(c.d, c.in.Sets, revision); target != nil {
		c.rehabilitate(c.account(target))
	}
	next, event, err := Rollback(c.d, c.in.Sets, revision)
	c.d, c.report = next, &event
	if err != nil {
		c.hold(next.Name, ReasonNoRollback, event.Message)
		c.editDeployment("the roll-back is not possible: " + err.Error())
		return
	}
	c.editDeployment(event.Message)
}
