// SPDX-License-Identifier: Apache-2.0

package facts

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ValidateClassReference returns the errors in the reference of a machine or of a template to its
// class, which is at the path: the class must have a name, and the kind MachineClass. What is
// invalid for a machine is invalid for its set and deployment.
func ValidateClassReference(ref v1alpha1.ClassSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch ref.Kind {
	case v1alpha1.MachineClassKind:
	case "":
		errs = append(errs, field.Required(path.Child("kind"), "Kind is required"))
	default:
		errs = append(errs, field.NotSupported(path.Child("kind"), Excerpt(ref.Kind), []string{v1alpha1.MachineClassKind}))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "Name is required"))
	}
	return errs
}

// ValidateClass returns the errors that keep VMs of a class from being created: a node template
// must have the capacities cpu, gpu and memory, the instance type, the region and the zone. They
// have no effect on deletions.
func ValidateClass(c *v1alpha1.MachineClass) field.ErrorList {
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

// SetOf returns the reference to the MachineSet that controls a machine, or nil.
func SetOf(m *v1alpha1.Machine) *metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil && owner.Kind == "MachineSet" {
		return owner
	}
	return nil
}

// ClassNeeded returns the name of the MachineClass of a machine, or of the template of a set or
// deployment, and whether the object needs it.
func ClassNeeded(o metav1.Object) (string, bool) {
	var class v1alpha1.ClassSpec
	switch o := o.(type) {
	case *v1alpha1.Machine:
		if o != nil {
			class = o.Spec.Class
		}
	case *v1alpha1.MachineSet:
		if o != nil && o.DeletionTimestamp == nil && !history(o) {
			class = o.Spec.Template.Spec.Class
		}
	case *v1alpha1.MachineDeployment:
		if o != nil && o.DeletionTimestamp == nil {
			class = o.Spec.Template.Spec.Class
		}
	}
	return class.Name, class.Kind == v1alpha1.MachineClassKind
}

// history reports whether a set is empty and has an owner, which may use it again.
func history(s *v1alpha1.MachineSet) bool {
	return metav1.GetControllerOfNoCopy(s) != nil && s.Spec.Replicas == 0 && s.Status.Replicas == 0
}
