// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// acceptable returns a node template without the entries that are invalid on a Node. The API server
// would refuse each write of the Node with them.
func acceptable(t nodeops.Template) nodeops.Template {
	t.Labels, t.Annotations, t.Taints = maps.Clone(t.Labels), maps.Clone(t.Annotations), slices.Clone(t.Taints)
	maps.DeleteFunc(t.Labels, func(key, value string) bool { return !labelKey(key) || !labelValue(value) })
	maps.DeleteFunc(t.Annotations, func(key, _ string) bool { return !annotationKey(key) })
	t.Taints = slices.DeleteFunc(t.Taints, func(taint corev1.Taint) bool { return taintProblem(&taint) != "" })
	return t
}

// ignoredTemplate appends the errors for the entries that [acceptable] removes.
func ignoredTemplate(t *v1alpha1.NodeTemplateSpec, errs field.ErrorList) field.ErrorList {
	path := field.NewPath("spec", "nodeTemplate")
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if value := t.Labels[key]; !labelKey(key) || !labelValue(value) {
			errs = append(errs, field.Invalid(path.Child("metadata", "labels").Key(facts.Excerpt(key)), facts.Excerpt(value), "is not a valid label of a Node"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if !annotationKey(key) {
			at, value := path.Child("metadata", "annotations").Key(facts.Excerpt(key)), facts.Excerpt(t.Annotations[key])
			errs = append(errs, field.Invalid(at, value, "is not a valid annotation of a Node"))
		}
	}
	for i := range t.Spec.Taints {
		if problem := taintProblem(&t.Spec.Taints[i]); problem != "" {
			errs = append(errs, field.Invalid(path.Child("spec", "taints").Index(i), facts.Excerpt(t.Spec.Taints[i].ToString()), problem))
		}
	}
	return errs
}

// taintProblem returns why a taint is invalid, or "".
func taintProblem(t *corev1.Taint) string {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case !labelKey(t.Key):
		return "has no valid key"
	case !labelValue(t.Value):
		return "has no valid value"
	case !slices.Contains(effects, t.Effect):
		return "has no valid effect"
	default:
		return ""
	}
}
