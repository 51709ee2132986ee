// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// HealthRule says when a condition of a Node makes its machine unhealthy.
type HealthRule struct {
	// Type of the condition.
	Type corev1.NodeConditionType
	// Unhealthy are the statuses that count as unhealthy.
	Unhealthy []corev1.ConditionStatus
	// For is how long the condition has to have such a status before it counts, by
	// the time of its last transition. Zero or less means at once.
	For time.Duration
}

// ParseHealthRules returns the rules that a comma-separated list of condition
// types stands for, as in spec.nodeConditions of a machine: each has to be absent
// or False. Spaces around entries, empty entries and repetitions are dropped.
func ParseHealthRules(list string) []HealthRule {
	var rules []HealthRule
	for entry := range strings.SplitSeq(list, ",") {
		t := corev1.NodeConditionType(strings.TrimSpace(entry))
		if t == "" || slices.ContainsFunc(rules, func(r HealthRule) bool { return r.Type == t }) {
			continue
		}
		rules = append(rules, HealthRule{Type: t, Unhealthy: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown}})
	}
	return rules
}
