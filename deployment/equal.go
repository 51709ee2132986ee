// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// EqualIgnoreHash says whether machines made from a and b count as the same
// generation. What can be changed without replacing machines is ignored: the
// template hash label, the node template, the overrides of time-outs and
// conditions, and the kind of the class. Everything else counts: other labels,
// annotations, finalizers, class name and API group, provider ID. Nil and empty
// maps are equal. The order of the arguments does not matter.
func EqualIgnoreHash(a, b v1alpha1.MachineTemplateSpec) bool {
	if a.Spec.Class.Name != b.Spec.Class.Name || a.Spec.Class.APIGroup != b.Spec.Class.APIGroup || a.Spec.ProviderID != b.Spec.ProviderID {
		return false
	}
	return equalButHash(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && slices.Equal(a.Finalizers, b.Finalizers) &&
		apiequality.Semantic.DeepEqual(others(a.ObjectMeta), others(b.ObjectMeta))
}

func equalButHash(a, b map[string]string) bool {
	const hash = v1alpha1.DefaultMachineDeploymentUniqueLabelKey
	n := len(b)
	if _, ok := b[hash]; ok {
		n--
	}
	for k, v := range a {
		if k == hash {
			continue
		}
		if w, ok := b[k]; !ok || v != w {
			return false
		}
		n--
	}
	return n == 0
}

// others returns what nobody writes into a template, and counts if somebody does;
// nil if nobody did.
func others(m metav1.ObjectMeta) *metav1.ObjectMeta {
	m.Labels, m.Annotations, m.Finalizers = nil, nil, nil
	if m.Name == "" && m.GenerateName == "" && m.Namespace == "" && m.UID == "" && m.ResourceVersion == "" &&
		m.SelfLink == "" && //nolint:staticcheck // nobody fills it in any more, and it counts if somebody does
		m.Generation == 0 && m.CreationTimestamp.IsZero() && m.DeletionTimestamp == nil && m.DeletionGracePeriodSeconds == nil &&
		len(m.OwnerReferences) == 0 && len(m.ManagedFields) == 0 {
		return nil
	}
	return &m
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
