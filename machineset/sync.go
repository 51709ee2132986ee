// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// syncFromTemplate returns the update of a machine to the template of its set, and whether there is
// one. The configuration and the kind of the class are updated in every phase, because a drain and a
// preservation read the configuration after the machine has failed or is being deleted. The node
// template is updated unless the machine is Failed or Terminating. Labels, annotations, finalizers
// and the provider ID stay, and so does the name of the class: the VM was made from it. Only a
// machine that was updated in place gets the whole class: see [updatedInPlace].
//
// A machine with a readable effective-creation-timeout annotation keeps that creation timeout. (MCM
// writes it at the creation and reverts it in the next pass.)
func syncFromTemplate(set *v1alpha1.MachineSet, m *v1alpha1.Machine) (Sync, bool) {
	s := Sync{Name: m.Name, UID: m.UID}
	template := &set.Spec.Template.Spec
	if phase := m.Status.CurrentStatus.Phase; phase != v1alpha1.MachineFailed && phase != v1alpha1.MachineTerminating {
		if !sameNodeTemplate(&m.Spec.NodeTemplateSpec, &template.NodeTemplateSpec) {
			s.NodeTemplate = template.NodeTemplateSpec.DeepCopy()
		}
	}
	if !followsConfiguration(m, template.MachineConfiguration) {
		s.Configuration = configurationFor(template.MachineConfiguration, m.Annotations)
	}
	class := m.Spec.Class
	class.Kind = template.Class.Kind
	if class != template.Class && updatedInPlace(set, m) {
		class = template.Class
	}
	if class != m.Spec.Class {
		s.Class = &class
	}
	return s, s.NodeTemplate != nil || s.Configuration != nil || s.Class != nil
}

// updatedInPlace reports whether a machine may have come to its set by an update in place: a
// deployment controls the set, and the machine has the condition of such updates. The template of
// such a set does not change its class, so a machine with another class was moved by MCM or by an
// earlier version, which kept the class. The reason of the condition does not matter, because the
// next update may have begun.
func updatedInPlace(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	owner := metav1.GetControllerOfNoCopy(set)
	return owner != nil && owner.Kind == "MachineDeployment" &&
		slices.ContainsFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeInPlaceUpdate })
}

// Apply returns a copy of the machine with the update, which shares no memory with its arguments.
// Write it with the resource version of the machine. It returns nil if the machine is nil or has
// another UID.
func (a Sync) Apply(m *v1alpha1.Machine) *v1alpha1.Machine {
	if m == nil || m.UID != a.UID {
		return nil
	}
	next := m.DeepCopy()
	if a.NodeTemplate != nil {
		a.NodeTemplate.DeepCopyInto(&next.Spec.NodeTemplateSpec)
	}
	if a.Configuration != nil {
		next.Spec.MachineConfiguration = noneIfEmpty(a.Configuration.DeepCopy())
	}
	if a.Class != nil {
		next.Spec.Class = *a.Class
	}
	if a.Preserve != nil {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, *a.Preserve)
		if *a.Preserve == "" {
			delete(next.Annotations, v1alpha1.PreserveMachineAnnotationKey)
		}
	}
	return next
}

// configurationFor returns the configuration of a machine with these annotations that is made from
// a template. It is not nil and shares no memory with its arguments.
func configurationFor(template *v1alpha1.MachineConfiguration, annotations map[string]string) *v1alpha1.MachineConfiguration {
	c := template.DeepCopy()
	if c == nil {
		c = &v1alpha1.MachineConfiguration{}
	}
	if text, found := annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout]; found {
		if d, err := time.ParseDuration(text); err == nil {
			c.MachineCreationTimeout = &metav1.Duration{Duration: d}
		}
	}
	return c
}

// sameNodeTemplate compares the fields of node templates without reflection, which would take most
// of the time of a decision.
func sameNodeTemplate(a, b *v1alpha1.NodeTemplateSpec) bool {
	if !plain(&a.ObjectMeta, &a.Spec) || !plain(&b.ObjectMeta, &b.Spec) {
		return equality.Semantic.DeepEqual(*a, *b)
	}
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		a.Spec.Unschedulable == b.Spec.Unschedulable && slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, sameTaint)
}

// plain reports whether only labels, annotations, taints and unschedulable are set.
func plain(m *metav1.ObjectMeta, s *corev1.NodeSpec) bool {
	return m.Name == "" && m.GenerateName == "" && m.Namespace == "" && m.UID == "" && m.ResourceVersion == "" && m.Generation == 0 &&
		m.SelfLink == "" && //nolint:staticcheck // deprecated, and compared if it is set
		m.CreationTimestamp.IsZero() && m.DeletionTimestamp == nil && m.DeletionGracePeriodSeconds == nil &&
		len(m.OwnerReferences) == 0 && len(m.Finalizers) == 0 && len(m.ManagedFields) == 0 &&
		s.ConfigSource == nil && //nolint:staticcheck // as above
		s.PodCIDR == "" && len(s.PodCIDRs) == 0 && s.ProviderID == "" && s.DoNotUseExternalID == "" && s.PodPreemptionPolicy == nil
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
}

// followsConfiguration reports whether the configuration of a machine equals that of
// [configurationFor]. It allocates nothing for a machine without the annotation.
func followsConfiguration(m *v1alpha1.Machine, template *v1alpha1.MachineConfiguration) bool {
	if _, found := m.Annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout]; found {
		template = configurationFor(template, m.Annotations)
	}
	return sameConfiguration(m.Spec.MachineConfiguration, template)
}

// sameConfiguration reports whether two configurations are equal. An empty configuration equals
// nil, as the API server stores none.
func sameConfiguration(a, b *v1alpha1.MachineConfiguration) bool {
	a, b = noneIfEmpty(a), noneIfEmpty(b)
	return a == nil && b == nil || equality.Semantic.DeepEqual(a, b)
}

func noneIfEmpty(c *v1alpha1.MachineConfiguration) *v1alpha1.MachineConfiguration {
	if c == nil || *c == (v1alpha1.MachineConfiguration{}) {
		return nil
	}
	return c
}
