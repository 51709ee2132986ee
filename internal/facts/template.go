// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// NodeTemplate returns the template of the Node of a machine. It has neither the name nor the UID of
// the machine, which the template cannot set. Its invalid entries are removed by [Acceptable].
func NodeTemplate(m *v1alpha1.Machine) nodeops.Template {
	t := m.Spec.NodeTemplateSpec
	return nodeops.Template{
		Labels: without(t.Labels, v1alpha1.MachineNameLabelKey), Annotations: without(t.Annotations, v1alpha1.MachineUIDAnnotation),
		Taints: t.Spec.Taints,
	}
}

// without returns a map without a key. It does not change m.
func without(m map[string]string, key string) map[string]string {
	if _, found := m[key]; found {
		m = maps.Clone(m)
		delete(m, key)
	}
	return m
}

// Acceptable returns a node template without the entries that are invalid on a Node, and the errors
// for these entries. The API server would refuse each write of the Node with them.
func Acceptable(t nodeops.Template) (nodeops.Template, field.ErrorList) {
	path, errs := field.NewPath("spec", "nodeTemplate"), field.ErrorList(nil)
	ok := nodeops.Template{Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations)}
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if value := t.Labels[key]; !labelKey(key) || !LabelValue(value) {
			delete(ok.Labels, key)
			errs = append(errs, field.Invalid(path.Child("metadata", "labels").Key(Excerpt(key)), Excerpt(value), "is not a valid label of a Node"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if !labelKey(strings.ToLower(key)) {
			delete(ok.Annotations, key)
			at, value := path.Child("metadata", "annotations").Key(Excerpt(key)), Excerpt(t.Annotations[key])
			errs = append(errs, field.Invalid(at, value, "is not a valid annotation of a Node"))
		}
	}
	for i, taint := range t.Taints {
		if problem := taintProblem(&taint); problem != "" {
			errs = append(errs, field.Invalid(path.Child("spec", "taints").Index(i), Excerpt(taint.ToString()), problem))
		} else {
			ok.Taints = append(ok.Taints, taint)
		}
	}
	return ok, errs
}

// taintProblem returns why a taint is invalid, or "".
func taintProblem(t *corev1.Taint) string {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case !labelKey(t.Key):
		return "has no valid key"
	case !LabelValue(t.Value):
		return "has no valid value"
	case !slices.Contains(effects, t.Effect):
		return "has no valid effect"
	default:
		return ""
	}
}

// labelKey reports whether the API server accepts the key of a label.
func labelKey(key string) bool { return len(content.IsLabelKey(key)) == 0 }

// LabelValue reports whether the API server accepts the value of a label.
func LabelValue(value string) bool { return len(content.IsLabelValue(value)) == 0 }
