// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strconv"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Validate returns what keeps a VM from being made for a machine: its class has to
// have a name, and the kind MachineClass. A machine that has its VM lives on. A
// nil machine is invalid.
func Validate(m *v1alpha1.Machine) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(field.NewPath("spec"), "Machine is required")}
	}
	ref := m.Spec.Class
	if ref.Kind == v1alpha1.MachineClassKind && ref.Name != "" {
		return nil
	}
	path := field.NewPath("spec", "class")
	errs := validateClassRef(ref, path)
	if ref.Kind != "" && ref.Kind != v1alpha1.MachineClassKind {
		errs = append(errs, field.NotSupported(path.Child("kind"), excerpt(ref.Kind), []string{v1alpha1.MachineClassKind}))
	}
	return errs
}

// validateClassRef returns what is wrong with a reference to a class at path, as
// it stands in machines and in templates. Which kinds there are is not its
// business.
func validateClassRef(ref v1alpha1.ClassSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "Kind is required"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "Name is required"))
	}
	return errs
}

// validateClass returns what keeps VMs from being made of a class: if it has a
// node template, that has to name the capacities cpu, gpu and memory, the instance
// type, the region and the zone. No deletion asks for it. A nil class is invalid.
func validateClass(c *v1alpha1.MachineClass) field.ErrorList {
	path := field.NewPath("nodeTemplate")
	switch {
	case c == nil:
		return field.ErrorList{field.Required(path.Root(), "MachineClass is required")}
	case c.NodeTemplate == nil:
		return nil
	}
	var errs field.ErrorList
	for _, name := range classCapacities {
		if _, ok := c.NodeTemplate.Capacity[name]; !ok {
			errs = append(errs, field.Required(path.Child("capacity").Key(string(name)), "Capacity is required"))
		}
	}
	for _, text := range []struct{ name, value string }{
		{"instanceType", c.NodeTemplate.InstanceType}, {"region", c.NodeTemplate.Region}, {"zone", c.NodeTemplate.Zone},
	} {
		if text.value == "" {
			errs = append(errs, field.Required(path.Child(text.name), "It is required in a node template"))
		}
	}
	return errs
}

// classCapacities have to be in the node template of a class.
var classCapacities = []corev1.ResourceName{corev1.ResourceCPU, "gpu", corev1.ResourceMemory}

// validClass says whether [validateClass] finds nothing.
func validClass(c *v1alpha1.MachineClass) bool {
	return c.NodeTemplate == nil || len(validateClass(c)) == 0
}

// ignored returns what is ignored outside of the node template.
func ignored(m *v1alpha1.Machine) field.ErrorList {
	errs := ignoredLabels(m.Labels, nil)
	errs = ignoredAnnotations(m.Annotations, errs)
	if m.Spec.MachineConfiguration != nil {
		errs = ignoredConfiguration(m.Spec.MachineConfiguration, errs)
	}
	return errs
}

func ignoredLabels(labels map[string]string, errs field.ErrorList) field.ErrorList {
	at := func(key string) *field.Path { return field.NewPath("metadata", "labels").Key(key) }
	if value, ok := labels[v1alpha1.LabelKeyForceDeletion]; ok {
		if _, err := strconv.ParseBool(value); err != nil {
			errs = append(errs, field.Invalid(at(v1alpha1.LabelKeyForceDeletion), excerpt(value), "is neither true nor false; nothing is forced"))
		}
	}
	if value, ok := labels[v1alpha1.LabelKeyForceDrain]; ok && value != forceDrain {
		if force, err := strconv.ParseBool(value); err != nil || force { // "false" means what it says
			errs = append(errs, field.NotSupported(at(v1alpha1.LabelKeyForceDrain), excerpt(value), []string{forceDrain}))
		}
	}
	return errs
}

func ignoredAnnotations(annotations map[string]string, errs field.ErrorList) field.ErrorList {
	at := func(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }
	if value, ok := annotations[v1alpha1.EffectiveCreationTimeout]; ok {
		switch d, err := time.ParseDuration(value); {
		case err != nil:
			errs = append(errs, field.Invalid(at(v1alpha1.EffectiveCreationTimeout), excerpt(value), "is no duration, such as 20m"))
		case d < 0:
			errs = append(errs, field.Invalid(at(v1alpha1.EffectiveCreationTimeout), excerpt(value), "is negative, which is for ever"))
		}
	}
	switch value := annotations[v1alpha1.PreserveMachineAnnotationKey]; value {
	case "", v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse:
	default:
		errs = append(errs, field.NotSupported(at(v1alpha1.PreserveMachineAnnotationKey), excerpt(value), []string{
			v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
			v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse,
		}))
	}
	if value := annotations[v1alpha1.MachinePriority]; value != "" {
		if _, err := strconv.Atoi(value); err != nil {
			errs = append(errs, field.Invalid(at(v1alpha1.MachinePriority), excerpt(value), "is no number"))
		}
	}
	return errs
}

func ignoredConfiguration(c *v1alpha1.MachineConfiguration, errs field.ErrorList) field.ErrorList {
	for _, timeout := range []struct {
		name string
		*metav1.Duration
	}{
		{"creationTimeout", c.MachineCreationTimeout},
		{"drainTimeout", c.MachineDrainTimeout},
		{"healthTimeout", c.MachineHealthTimeout},
		{"inPlaceUpdateTimeout", c.MachineInPlaceUpdateTimeout},
		{"machinePreserveTimeout", c.MachinePreserveTimeout},
	} {
		if timeout.Duration != nil && timeout.Duration.Duration < 0 {
			errs = append(errs, field.Invalid(field.NewPath("spec", timeout.name), timeout.Duration.Duration.String(), "is negative, which is for ever"))
		}
	}
	if c.MaxEvictRetries != nil && *c.MaxEvictRetries < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "maxEvictRetries"), *c.MaxEvictRetries, "is negative"))
	}
	return errs
}

// ignoredWithoutTarget returns what only a machine of a cluster may have.
func ignoredWithoutTarget(m *v1alpha1.Machine) field.ErrorList {
	if m.Labels[v1alpha1.NodeLabelKey] == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "labels").Key(v1alpha1.NodeLabelKey), "there is no cluster to join")}
}

// told renders errors for people, in a bounded length.
func told(errs field.ErrorList) string { return shorten(errs.ToAggregate().Error()) }

// excerpt returns the beginning of a value that may be of any length.
func excerpt(value string) string {
	const enough = 64
	if len(value) <= enough {
		return value
	}
	end := enough
	for end > 0 && !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end] + "…"
}
