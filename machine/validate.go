// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strconv"
	"time"

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
	var errs field.ErrorList
	ref, path := m.Spec.Class, field.NewPath("spec", "class")
	switch ref.Kind {
	case v1alpha1.MachineClassKind:
	case "":
		errs = append(errs, field.Required(path.Child("kind"), "Kind is required"))
	default:
		errs = append(errs, field.NotSupported(path.Child("kind"), excerpt(ref.Kind), []string{v1alpha1.MachineClassKind}))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "Name is required"))
	}
	return errs
}

// validateClass returns what keeps VMs from being made of a class: if it has a
// node template, that has to name the capacities cpu, gpu and memory, the instance
// type, the region and the zone. No deletion asks for it.
func validateClass(c *v1alpha1.MachineClass) field.ErrorList {
	if c == nil || c.NodeTemplate == nil {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("nodeTemplate")
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, "gpu", corev1.ResourceMemory} {
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
	if value := annotations[v1alpha1.PreserveMachineAnnotationKey]; value != "" && !preserveValue(value) {
		errs = append(errs, field.NotSupported(at(v1alpha1.PreserveMachineAnnotationKey), excerpt(value), preserveValues))
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
