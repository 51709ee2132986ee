// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// FindSets returns the new set of a deployment and the old ones. The new set is the oldest one
// whose template is equal to that of the deployment (see [EqualIgnoreHash]), or nil. All others are
// old, oldest first: sorted by creation time, name and UID. Nil sets are skipped. The sets are not
// copied.
func FindSets(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet) (newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) {
	for _, s := range ByCreation(sets) {
		if newSet == nil && d != nil && EqualIgnoreHash(s.Spec.Template, d.Spec.Template) {
			newSet = s
			continue
		}
		old = append(old, s)
	}
	return newSet, old
}

// EqualIgnoreHash reports whether two templates are equal, so that a change from one to the other
// causes no rollout. It ignores the template hash label, the node template, the machine
// configuration and the kind of the class, which change without a rollout. Nil and empty maps are
// equal.
func EqualIgnoreHash(a, b v1alpha1.MachineTemplateSpec) bool {
	return a.Spec.Class.Name == b.Spec.Class.Name && apiequality.Semantic.DeepEqual(Generation(a), Generation(b))
}

// Generation returns a template without the fields that [EqualIgnoreHash] ignores. It shares memory
// with t, except for the labels.
func Generation(t v1alpha1.MachineTemplateSpec) v1alpha1.MachineTemplateSpec {
	t.Labels = maps.Clone(t.Labels)
	delete(t.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	if len(t.Labels) == 0 {
		t.Labels = nil
	}
	t.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{}
	t.Spec.MachineConfiguration = nil
	t.Spec.Class.Kind = ""
	return t
}
