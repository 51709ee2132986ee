// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// acceptable returns a node template without what the API server would not take on
// a Node: it would refuse every write of the Node for it, and the machine would get
// no further. Nothing is copied if there is nothing of the kind.
func acceptable(t nodeops.Template) nodeops.Template {
	badLabel := func(key, value string) bool { return !labelKey(key) || !labelValue(value) }
	badAnnotation := func(key, _ string) bool { return !annotationKey(key) }
	badTaint := func(taint corev1.Taint) bool { return taintProblem(&taint) != "" }
	t.Labels, t.Annotations = without(t.Labels, badLabel), without(t.Annotations, badAnnotation)
	if slices.ContainsFunc(t.Taints, badTaint) {
		t.Taints = slices.DeleteFunc(slices.Clone(t.Taints), badTaint)
	}
	return t
}

func without(m map[string]string, bad func(key, value string) bool) map[string]string {
	for key, value := range m {
		if bad(key, value) {
			m = maps.Clone(m)
			maps.DeleteFunc(m, bad)
			return m
		}
	}
	return m
}

// ignoredTemplate adds what [acceptable] leaves out.
func ignoredTemplate(t *v1alpha1.NodeTemplateSpec, errs field.ErrorList) field.ErrorList {
	at := func(key, of string) *field.Path {
		return field.NewPath("spec", "nodeTemplate", "metadata", of).Key(excerpt(key))
	}
	for _, key := range invalid(t.Labels, labelKey, labelValue) {
		errs = append(errs, field.Invalid(at(key, "labels"), excerpt(t.Labels[key]), "is no label that a Node may have"))
	}
	for _, key := range invalid(t.Annotations, annotationKey, nil) {
		errs = append(errs, field.Invalid(at(key, "annotations"), excerpt(t.Annotations[key]), "is no annotation that a Node may have"))
	}
	for i := range t.Spec.Taints {
		if problem := taintProblem(&t.Spec.Taints[i]); problem != "" {
			taint := excerpt(t.Spec.Taints[i].ToString())
			errs = append(errs, field.Invalid(field.NewPath("spec", "nodeTemplate", "spec", "taints").Index(i), taint, problem))
		}
	}
	return errs
}

// invalid returns the keys that are not valid, or whose values are not, in order.
func invalid(m map[string]string, key, value func(string) bool) []string {
	var bad []string
	for k, v := range m {
		if !key(k) || value != nil && !value(v) {
			bad = append(bad, k)
		}
	}
	slices.Sort(bad)
	return bad
}

// taintProblem returns why a Node cannot have a taint, or "".
func taintProblem(t *corev1.Taint) string {
	switch {
	case !labelKey(t.Key):
		return "has no valid key"
	case !labelValue(t.Value):
		return "has no valid value"
	}
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return ""
	default:
		return "has no valid effect"
	}
}

// The forms of labels and annotations are those of the API server. What is plain
// needs no regular expression.

func labelKey(key string) bool {
	prefix, name, qualified := strings.Cut(key, "/")
	if !qualified {
		prefix, name = "x", key
	}
	return plain(prefix, true) && len(prefix) <= 63 && plain(name, false) && len(name) <= 63 ||
		len(validation.IsQualifiedName(key)) == 0
}

func labelValue(value string) bool {
	return value == "" || plain(value, false) && len(value) <= 63 || len(validation.IsValidLabelValue(value)) == 0
}

func annotationKey(key string) bool { return labelKey(key) || labelKey(strings.ToLower(key)) }

// plain says whether s consists of letters and digits with single signs between
// them. lower allows no capitals, and the signs - and . alone.
func plain(s string, lower bool) bool {
	sign := true
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', !lower && 'A' <= c && c <= 'Z':
			sign = false
		case !sign && (c == '-' || c == '.' || !lower && c == '_'):
			sign = true
		default:
			return false
		}
	}
	return !sign
}
