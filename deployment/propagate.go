// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Propagate returns a copy of the new set with what it takes over from its
// deployment without a roll-out, and what differs: annotations and revision
// (see [NewSetAnnotations]), node template, overrides, class kind, minimum ready
// time, and the number of preserved machines. The copy is nil if nothing
// differs. Old sets never take anything over.
func Propagate(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) (*v1alpha1.MachineSet, []string) {
	if d == nil || newSet == nil {
		return nil, nil
	}
	s, from := newSet.DeepCopy(), d.Spec.DeepCopy()
	var differs []string
	annotations, changed := NewSetAnnotations(d, s, nextRevision(old), true)
	if changed {
		s.Annotations = annotations
		differs = append(differs, "annotations")
	}
	have, want := &s.Spec.Template.Spec, &from.Template.Spec
	if !equality.Semantic.DeepEqual(have.NodeTemplateSpec, want.NodeTemplateSpec) {
		have.NodeTemplateSpec = want.NodeTemplateSpec
		differs = append(differs, "node template")
	}
	if !equality.Semantic.DeepEqual(have.MachineConfiguration, want.MachineConfiguration) {
		have.MachineConfiguration = want.MachineConfiguration
		differs = append(differs, "machine configuration")
	}
	if have.Class.Kind != want.Class.Kind {
		have.Class.Kind = want.Class.Kind
		differs = append(differs, "class kind")
	}
	if s.Spec.MinReadySeconds != from.MinReadySeconds {
		s.Spec.MinReadySeconds = from.MinReadySeconds
		differs = append(differs, "minReadySeconds")
	}
	if s.Spec.AutoPreserveFailedMachineMax != from.AutoPreserveFailedMachineMax {
		s.Spec.AutoPreserveFailedMachineMax = from.AutoPreserveFailedMachineMax
		differs = append(differs, "autoPreserveFailedMachineMax")
	}
	if len(differs) == 0 {
		return nil, nil
	}
	return s, differs
}

// nextRevision is one more than any old set has.
func nextRevision(old []*v1alpha1.MachineSet) string {
	return strconv.FormatInt(MaxRevision(old)+1, 10)
}

// propagate updates the new set, and says so; the rest is for the next time,
// since the set will have changed by then.
func (c *pass) propagate() bool {
	if c.newSet == nil || c.newSet.DeletionTimestamp != nil {
		return false
	}
	edited, differs := Propagate(c.d, c.newSet, c.old)
	if edited == nil {
		return false
	}
	c.out.Reason = ReasonUpdatingSet
	c.add(UpdateSet{Set: edited, Message: strings.Join(differs, ", ") + " differ from the deployment"})
	return true
}

// adoptRevision gives the deployment the revision of its new set, and makes
// sure that there is a Progressing condition.
func (c *pass) adoptRevision() {
	if c.newSet == nil {
		return
	}
	revision, ok := c.newSet.Annotations[v1alpha1.RevisionAnnotation]
	if ok && c.d.Annotations[v1alpha1.RevisionAnnotation] != revision {
		c.add(Annotate{Annotations: map[string]string{v1alpha1.RevisionAnnotation: revision}})
	}
	if GetCondition(c.d.Status, v1alpha1.MachineDeploymentProgressing) == nil {
		c.progress(v1alpha1.FoundNewMachineSet, fmt.Sprintf("Found new machine set %q", c.newSet.Name))
	}
}

// progress writes a step of a roll-out down, to be seen by what follows.
func (c *pass) progress(reason, message string) {
	c.d.Status.Conditions = withCondition(c.d.Status.Conditions,
		newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionTrue, reason, message, c.now))
}
