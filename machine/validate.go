// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Validate returns what keeps a machine from being acted upon: its class has to
// have a kind and a name. A nil machine is invalid.
func Validate(m *v1alpha1.Machine) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(field.NewPath("spec"), "Machine is required")}
	}
	return ValidateClassRef(m.Spec.Class, field.NewPath("spec", "class"))
}

// ValidateClassRef returns what is wrong with a reference to a class at path, as
// it stands in machines and in templates.
func ValidateClassRef(ref v1alpha1.ClassSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "Kind is required"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "Name is required"))
	}
	return errs
}

// validity shows on the object what is wrong with it.
func (l life) validity() Decision { return Decision{} }
