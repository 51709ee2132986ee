// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The fields of a machine that follow the template of its set.
const (
	nodeTemplate  = "node template"
	configuration = "configuration"
	class         = "class"
)

var templateFields = []string{nodeTemplate, configuration, class}

// syncFromTemplate returns the update of a machine to the template of its set, without changes if the
// machine follows it. The configuration and the kind of the class are updated in every phase, because a drain and a
// preservation read the configuration after the machine has failed or is being deleted. The node
// template is updated unless the machine is Failed or Terminating. Labels, annotations, finalizers
// and the provider ID stay, and so does the name of the class: the VM was made from it. Only a
// machine that was updated in place gets the whole class: see [updatedInPlace].
//
// A machine with a readable effective-creation-timeout annotation keeps that creation timeout. (MCM
// writes it at the creation and reverts it in the next pass.)
func syncFromTemplate(set *v1alpha1.MachineSet, m *v1alpha1.Machine) machinist.Update {
	var u machinist.Update
	template := &set.Spec.Template.Spec
	phase := m.Status.CurrentStatus.Phase
	if phase != v1alpha1.MachineFailed && phase != v1alpha1.MachineTerminating && !sameNodeTemplate(&m.Spec.NodeTemplateSpec, &template.NodeTemplateSpec) {
		edit(&u, m, nodeTemplate).Spec.NodeTemplateSpec = *template.NodeTemplateSpec.DeepCopy()
	}
	if !followsConfiguration(m, template.MachineConfiguration) {
		edit(&u, m, configuration).Spec.MachineConfiguration = noneIfEmpty(configurationFor(template.MachineConfiguration, m.Annotations))
	}
	of := m.Spec.Class
	of.Kind = template.Class.Kind
	if of != template.Class && updatedInPlace(set, m) {
		of = template.Class
	}
	if of != m.Spec.Class {
		edit(&u, m, class).Spec.Class = of
	}
	return u
}

// setPreserve adds the preserve annotation to the update of a machine. An empty value removes it.
func setPreserve(u *machinist.Update, m *v1alpha1.Machine, value string) {
	next := edit(u, m, "preservation")
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, value)
	if value == "" {
		delete(next.Annotations, v1alpha1.PreserveMachineAnnotationKey)
	}
}

// edit adds a change to the update of a machine, and returns the machine to edit. The first change
// copies the machine.
func edit(u *machinist.Update, m *v1alpha1.Machine, change string) *v1alpha1.Machine {
	if u.Object == nil {
		*u = machinist.Update{Before: m, Object: m.DeepCopy(), Unchanged: true}
	}
	u.Changes = append(u.Changes, change)
	return u.Object.(*v1alpha1.Machine) //nolint:forcetypeassert // it was set above
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
		s.PodCIDR == "" && len(s.PodCIDRs) == 0 && s.ProviderID == "" && s.DoNotUseExternalID == "" &&
		!slices.ContainsFunc(newerFields, func(i int) bool { return !reflect.ValueOf(s).Elem().Field(i).IsZero() })
}

// newerFields are the indexes of the fields that NodeSpec has got since k8s.io/api v0.35, the lowest version that
// works here, such as PodPreemptionPolicy.
var newerFields = func() (indexes []int) {
	known := []string{"PodCIDR", "PodCIDRs", "ProviderID", "Unschedulable", "Taints", "ConfigSource", "DoNotUseExternalID"}
	for i := range reflect.TypeFor[corev1.NodeSpec]().NumField() {
		if !slices.Contains(known, reflect.TypeFor[corev1.NodeSpec]().Field(i).Name) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}()

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
