// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ParseHealthConditions returns the types in a comma-separated list of Node conditions, as in
// spec.nodeConditions of a machine. It ignores spaces, empty entries and duplicates.
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

// judgeHealth reports whether a Node is healthy, and returns the bad conditions. Ready must be
// True. Conditions of the listed types must be False or missing. Unlike in MCM, a Node without
// Ready is unhealthy.
func judgeHealth(conditions []corev1.NodeCondition, types []corev1.NodeConditionType) (healthy bool, bad []corev1.NodeCondition) {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type != corev1.NodeReady && c.Status != corev1.ConditionFalse && slices.Contains(types, c.Type) {
			bad = append(bad, c)
		}
	}
	return len(bad) == 0 && facts.ConditionOf(conditions, corev1.NodeReady) != nil, bad
}

// conditionsChanged reports whether the recorded conditions of a Node are out of date: a type is
// new or missing, a status differs, or the reason of InPlaceUpdate differs. Heartbeats, messages
// and other reasons do not count.
func conditionsChanged(recorded, observed []corev1.NodeCondition) bool {
	if slices.EqualFunc(recorded, observed, sameHealth) { // the usual case
		return false
	}
	return len(recorded) != len(observed) || slices.ContainsFunc(observed, func(o corev1.NodeCondition) bool {
		r := facts.ConditionOf(recorded, o.Type)
		return r == nil || !sameHealth(*r, o)
	})
}

// sameHealth reports whether two conditions are equal for [conditionsChanged].
func sameHealth(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && (a.Type != v1alpha1.NodeInPlaceUpdate || a.Reason == b.Reason)
}

// conditionList returns the conditions as a text for people.
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

// criticalTaint reports whether critical components of the Node are not ready.
func criticalTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintNodeCriticalComponentsNotReady && t.Effect == corev1.TaintEffectNoSchedule
	})
}
