// SPDX-License-Identifier: Apache-2.0

package facts

import (
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
