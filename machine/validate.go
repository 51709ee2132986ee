// SPDX-License-Identifier: Apache-2.0

package machine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Validate returns the errors that keep the VM of a machine from being created: its class must have a
// name, and the kind MachineClass. They have no effect on a machine with a VM. A nil machine is invalid.
func Validate(m *v1alpha1.Machine) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(field.NewPath("spec"), "Machine is required")}
	}
	if c := m.Spec.Class; c.Kind == v1alpha1.MachineClassKind && c.Name != "" { // the usual case, without an allocation
		return nil
	}
	return facts.ValidateClassReference(m.Spec.Class, field.NewPath("spec", "class"))
}

// validateClass returns the errors that keep VMs of a class from being created: a node template
// must have the capacities cpu, gpu and memory, the instance type, the region and the zone. They
// have no effect on deletions.
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
			errs = append(errs, field.Required(path.Child(text.name), "is required in a node template"))
		}
	}
	return errs
}

// fieldErrors returns the errors as one text of limited length.
func fieldErrors(errs field.ErrorList) string { return facts.Shorten(errs.ToAggregate().Error()) }
