// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Propagate returns a copy of the new set with what it takes over from its
// deployment without a roll-out, and what differs: annotations and revision
// (see [NewSetAnnotations]), node template, overrides, class kind, minimum ready
// time, and the number of preserved machines. The copy is nil if nothing
// differs.
//
// Old sets never take anything over, as in the reference system. They are what a
// roll-back goes back to, time-outs included; and a wrong time-out reaches only
// the machines of one generation. Whoever wants another drain time-out for old
// machines changes it in the template of their set, which hands it on to them.
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

// nextRevision is one more than any old set has, as long as there is such a number.
func nextRevision(old []*v1alpha1.MachineSet) string {
	highest := MaxRevision(old)
	if highest < math.MaxInt64 {
		highest++
	}
	return strconv.FormatInt(highest, 10)
}

// propagate updates the new set.
func (c *pass) propagate() {
	a := c.account(c.newSet)
	if a == nil || a.doomed {
		return
	}
	edited, differs := Propagate(c.d, a.next, c.old)
	if edited == nil {
		return
	}
	a.next = edited
	a.changes = append(a.changes, strings.Join(differs, ", ")+" differ from the deployment")
}

// adoptRevision gives the deployment the revision of its new set, and makes
// sure that there is a Progressing condition that is not about another roll-out: a
// set of an earlier roll-out may become the new one again without being created.
func (c *pass) adoptRevision() {
	a := c.account(c.newSet)
	if a == nil || len(a.changes) > 0 {
		return // the set has to have its own revision first
	}
	again := false
	_, had := c.d.Annotations[v1alpha1.RevisionAnnotation]
	revision, ok := c.newSet.Annotations[v1alpha1.RevisionAnnotation]
	if ok && c.d.Annotations[v1alpha1.RevisionAnnotation] != revision {
		if c.d.Annotations == nil {
			c.d.Annotations = map[string]string{}
		}
		c.d.Annotations[v1alpha1.RevisionAnnotation] = revision
		c.editDeployment("revision is " + revision)
		c.statusToo = true // as in the reference system
		again = had && c.newSet.Spec.Replicas < c.d.Spec.Replicas
	}
	cond := GetCondition(c.d.Status, v1alpha1.MachineDeploymentProgressing)
	if cond == nil || again && (cond.Reason == v1alpha1.NewMachineSetAvailable || cond.Reason == v1alpha1.ProgressDeadlineExceeded) {
		c.progress(v1alpha1.FoundNewMachineSet, fmt.Sprintf("Found new machine set %q", c.newSet.Name))
	}
}

// progress writes a step of a roll-out down, to be seen by what follows.
func (c *pass) progress(reason, message string) {
	c.d.Status.Conditions = withCondition(c.d.Status.Conditions,
		newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionTrue, reason, message, c.now))
}
