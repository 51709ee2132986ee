// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// validate returns why a set is invalid: see [ReasonInvalid].
func validate(set *v1alpha1.MachineSet) field.ErrorList {
	if set == nil {
		return field.ErrorList{field.Required(field.NewPath(""), "there is no MachineSet")}
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if set.Spec.Replicas < 0 {
		errs = append(errs, field.Required(spec.Child("replicas"), "Replicas has to be a whole number"))
	}
	errs = append(errs, validateSelector(set.Spec.Selector, set.Spec.Template.Labels, spec.Child("selector"))...)
	return append(errs, facts.ValidateClassReference(set.Spec.Template.Spec.Class, spec.Child("template", "spec", "class"))...)
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

// selectorOf returns the selector of a label selector. For nil it returns the empty selector, which
// callers have to refuse because it matches everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
