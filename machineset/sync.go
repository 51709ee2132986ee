// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// SyncFromTemplate returns what has to change in a machine so that it follows
// the template of its set, and false if nothing has to. Node template and
// configuration are followed by [Active] machines, the class kind by all. Labels,
// annotations, finalizers, class name and providerID are those that the machine
// was created with. Nil arguments give false.
//
// A machine whose effective-creation-timeout annotation is readable keeps it as
// its creation timeout, whatever the template says. The reference system writes
// it at the creation and undoes it on the next pass.
func SyncFromTemplate(set *v1alpha1.MachineSet, m *v1alpha1.Machine) (Sync, bool) {
	if set == nil || m == nil {
		return Sync{}, false
	}
	s := Sync{Name: m.Name, UID: m.UID}
	template := &set.Spec.Template.Spec
	if Active(m) {
		if !equality.Semantic.DeepEqual(m.Spec.NodeTemplateSpec, template.NodeTemplateSpec) {
			s.NodeTemplate = template.NodeTemplateSpec.DeepCopy()
		}
		if wanted := configurationFor(template.MachineConfiguration, m.Annotations); !sameConfiguration(m.Spec.MachineConfiguration, wanted) {
			s.Configuration = wanted
		}
	}
	if kind := template.Class.Kind; m.Spec.Class.Kind != kind {
		s.ClassKind = &kind
	}
	return s, s.NodeTemplate != nil || s.Configuration != nil || s.ClassKind != nil
}

// Apply returns a copy of a machine with the edits made, which shares nothing
// with the machine or with the Sync. Write it with the resource version that the
// machine was read with. It returns nil if the machine is nil or another one, by
// its UID.
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
	if a.ClassKind != nil {
		next.Spec.Class.Kind = *a.ClassKind
	}
	if a.Preserve != nil {
		setPreserve(next, *a.Preserve)
	}
	return next
}

func setPreserve(m *v1alpha1.Machine, value string) {
	if value == "" {
		delete(m.Annotations, v1alpha1.PreserveMachineAnnotationKey)
		return
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = value
}

// configurationFor returns the configuration of a machine that is made from a
// template and carries these annotations. It is not nil, and shares nothing with
// its arguments.
func configurationFor(template *v1alpha1.MachineConfiguration, annotations map[string]string) *v1alpha1.MachineConfiguration {
	c := template.DeepCopy()
	if c == nil {
		c = &v1alpha1.MachineConfiguration{}
	}
	if text, found := annotations[v1alpha1.EffectiveCreationTimeout]; found {
		if d, err := time.ParseDuration(text); err == nil {
			c.MachineCreationTimeout = &metav1.Duration{Duration: d}
		}
	}
	return c
}

// sameConfiguration takes a configuration that overrides nothing for none, which
// is what a round trip through the API server makes of it.
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
