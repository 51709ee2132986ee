// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Healthy says whether conditions are those of a healthy Node, and if not, which
// of them are not. Ready has to be there and True; every type in unhealthy has
// to be absent or False.
//
// Unlike the reference system, a Node without Ready is not healthy.
func Healthy(conditions []corev1.NodeCondition, unhealthy []string) (bool, []corev1.NodeCondition) {
	var bad []corev1.NodeCondition
	ready := false
	for _, c := range conditions {
		switch {
		case c.Type == corev1.NodeReady:
			ready = true
			if c.Status != corev1.ConditionTrue {
				bad = append(bad, c)
			}
		case c.Status != corev1.ConditionFalse && slices.Contains(unhealthy, string(c.Type)):
			bad = append(bad, c)
		}
	}
	return ready && len(bad) == 0, bad
}

// ConditionsChanged says whether conditions of a Node differ from those recorded
// in a way that matters: a type came or went, a status changed, or the reason of
// the in-place update did. Heartbeats, messages and other reasons do not matter.
func ConditionsChanged(recorded, observed []corev1.NodeCondition) bool {
	if len(recorded) != len(observed) {
		return true
	}
	for i := range observed {
		o := &observed[i]
		if conditionOf(observed, o.Type) != o {
			continue // a second one of its type
		}
		r := conditionOf(recorded, o.Type)
		if r == nil || r.Status != o.Status || o.Type == v1alpha1.NodeInPlaceUpdate && r.Reason != o.Reason {
			return true
		}
	}
	return false
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
