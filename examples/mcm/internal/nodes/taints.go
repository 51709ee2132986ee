// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseTaints returns the taints to add, each written key=value:Effect, and those to remove, written key:Effect- or key-
// for all effects. A text of another form, and a second taint to add with the same key and effect, are errors.
func ParseTaints(specs []string) (add, remove []corev1.Taint, err error) {
	for _, spec := range specs {
		rest, removes := strings.CutSuffix(spec, "-")
		head, effect, hasEffect := strings.Cut(rest, ":")
		key, value, hasValue := strings.Cut(head, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		known := slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect)
		switch {
		case len(validation.IsQualifiedName(key)) > 0, len(validation.IsValidLabelValue(value)) > 0,
			hasEffect && !known, removes == hasValue, !removes && !hasEffect:
			return nil, nil, fmt.Errorf("taint %q is not of the form key=value:Effect, key:Effect- or key-", spec)
		case removes:
			remove = append(remove, t)
		case slices.ContainsFunc(add, func(o corev1.Taint) bool { return o.MatchTaint(&t) }):
			return nil, nil, fmt.Errorf("taint %q: two taints have this key and effect", spec)
		default:
			add = append(add, t)
		}
	}
	return add, remove, nil
}
