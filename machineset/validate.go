// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Validate returns what is wrong with a set; nothing is decided for a set with
// which something is, except that it may be deleted. Errors are in the order of
// this list:
//
//   - spec.replicas is negative;
//   - spec.selector is missing or empty, or cannot be parsed;
//   - spec.selector does not match the labels of the template, so that a set
//     would never see the machines it creates;
//   - spec.template.spec.class.kind is empty;
//   - spec.template.spec.class.name is empty.
//
// Beyond the reference system, which panics on a missing selector, takes an
// empty one to select everything, and looks at spec.selector.matchLabels alone.
func Validate(set *v1alpha1.MachineSet) field.ErrorList {
	if set == nil {
		return field.ErrorList{field.Required(field.NewPath(""), "there is no MachineSet")}
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if set.Spec.Replicas < 0 {
		errs = append(errs, field.Required(spec.Child("replicas"), "Replicas has to be a whole number"))
	}
	errs = append(errs, validateSelector(set.Spec.Selector, set.Spec.Template.Labels, spec.Child("selector"))...)
	class := spec.Child("template", "spec", "class")
	if set.Spec.Template.Spec.Class.Kind == "" {
		errs = append(errs, field.Required(class.Child("kind"), "Kind is required"))
	}
	if set.Spec.Template.Spec.Class.Name == "" {
		errs = append(errs, field.Required(class.Child("name"), "Name is required"))
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, template map[string]string, path *field.Path) field.ErrorList {
	selector, err := selectorOf(s)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, metav1.FormatLabelSelector(s), err.Error())}
	case selector.Empty():
		return field.ErrorList{field.Required(path, "Selector must not be empty")}
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if value, found := template[key]; !found || value != s.MatchLabels[key] {
			return field.ErrorList{field.Required(path.Child("matchLabels"), "is not matching with spec.template.metadata.labels")}
		}
	}
	if !selector.Matches(labels.Set(template)) {
		return field.ErrorList{field.Invalid(path, metav1.FormatLabelSelector(s), "does not match spec.template.metadata.labels")}
	}
	return nil
}

// selectorOf converts a selector. Nil gives the empty selector, which callers
// have to refuse: it would match everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
