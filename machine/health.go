// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ParseHealthConditions returns the types in a comma-separated list of Node conditions,
// as in spec.nodeConditions of a machine. Spaces around entries, empty entries and
// repetitions are dropped.
func ParseHealthConditions(list string) []corev1.NodeConditionType {
	var types []corev1.NodeConditionType
	for entry := range strings.SplitSeq(list, ",") {
		t := corev1.NodeConditionType(strings.TrimSpace(entry))
		if t != "" && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// judgeHealth returns whether a Node is healthy, and the conditions that are bad:
// Ready has to be there and True, and the conditions of the listed types may be False
// or missing.
//
// Unlike MCM, a Node without Ready is not healthy.
func judgeHealth(conditions []corev1.NodeCondition, types []corev1.NodeConditionType) (healthy bool, bad []corev1.NodeCondition) {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type != corev1.NodeReady && c.Status != corev1.ConditionFalse && slices.Contains(types, c.Type) {
			bad = append(bad, c)
		}
	}
	return len(bad) == 0 && conditionOf(conditions, corev1.NodeReady) != nil, bad
}

// conditionsChanged says whether conditions of a Node differ from those recorded
// in a way that matters: a type came or went, a status changed, or the reason of
// the in-place update did. Heartbeats, messages and other reasons do not matter.
func conditionsChanged(recorded, observed []corev1.NodeCondition) bool {
	if slices.EqualFunc(recorded, observed, sameStatusOf) { // as nearly always
		return false
	}
	return len(recorded) != len(observed) || slices.ContainsFunc(observed, func(o corev1.NodeCondition) bool {
		r := conditionOf(recorded, o.Type)
		return r == nil || !sameStatusOf(*r, o)
	})
}

// sameStatusOf says whether two conditions say the same of a Node.
func sameStatusOf(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && (a.Type != v1alpha1.NodeInPlaceUpdate || a.Reason == b.Reason)
}

// conditionOf returns the first condition of a type, or nil.
func conditionOf(conditions []corev1.NodeCondition, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// conditionList renders conditions for people.
func conditionList(conditions []corev1.NodeCondition) string {
	if len(conditions) == 0 {
		return "[no Ready condition]"
	}
	parts := make([]string, len(conditions))
	for i, c := range conditions {
		parts[i] = fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Reason != "" {
			parts[i] += " (" + c.Reason + ")"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// criticalTaint says whether the Node waits for components without which it is
// of no use.
func criticalTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintNodeCriticalComponentsNotReady && t.Effect == corev1.TaintEffectNoSchedule
	})
}
