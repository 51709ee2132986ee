// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// EqualIgnoreHash says whether machines made from a and b count as the same
// generation. What can be changed without replacing machines is ignored: the
// template hash label, the node template, the overrides of time-outs and
// conditions, and the kind of the class. Everything else counts: other labels,
// annotations, finalizers, class name and API group, provider ID. Nil and empty
// maps are equal. The order of the arguments does not matter.
func EqualIgnoreHash(a, b v1alpha1.MachineTemplateSpec) bool {
	return apiequality.Semantic.DeepEqual(generation(a), generation(b))
}

// generation returns the part of a template that makes a generation. It shares
// memory with t, except for the labels.
func generation(t v1alpha1.MachineTemplateSpec) v1alpha1.MachineTemplateSpec {
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
