// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// healthVerdict is what the conditions of a Node say of it.
type healthVerdict struct {
	// Healthy says that Ready is there and no condition is bad.
	Healthy bool
	// Bad are the conditions that are not those of a healthy Node.
	Bad []corev1.NodeCondition
	// NextCheck is when a condition will have been bad for long enough to count, if
	// nothing changes before. Zero is never.
	NextCheck time.Time
}

// judgeHealth returns what conditions say of a Node at now. Ready has to be
// there, and to be True unless one of the rules is about Ready; no other rule may
// be broken. Nil rules leave Ready alone to count.
//
// Unlike the reference system, a Node without Ready is not healthy.
func judgeHealth(conditions []corev1.NodeCondition, rules []HealthRule, now time.Time) healthVerdict {
	var h healthVerdict
	ready := false
	for i := range conditions {
		c := &conditions[i]
		ready = ready || c.Type == corev1.NodeReady
		since, bad := badSince(c, rules)
		switch {
		case !bad:
		case since.After(now):
			h.NextCheck = machinist.Earliest(h.NextCheck, since)
		default:
			h.Bad = append(h.Bad, *c)
		}
	}
	h.Healthy = ready && len(h.Bad) == 0
	return h
}

// badSince says whether a condition breaks a rule, and from when on that counts;
// zero is at once.
func badSince(c *corev1.NodeCondition, rules []HealthRule) (time.Time, bool) {
	for i := range rules {
		r := &rules[i]
		switch {
		case r.Type != c.Type:
		case !slices.Contains(r.Unhealthy, c.Status):
			return time.Time{}, false
		case r.For <= 0 || c.LastTransitionTime.IsZero():
			return time.Time{}, true
		default:
			return c.LastTransitionTime.Add(r.For), true
		}
	}
	return time.Time{}, c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
}

// conditionsChanged says whether conditions of a Node differ from those recorded
// in a way that matters: a type came or went, a status changed, or the reason of
// the in-place update did. Heartbeats, messages and other reasons do not matter.
func conditionsChanged(recorded, observed []corev1.NodeCondition) bool {
	if len(recorded) != len(observed) {
		return true
	}
	if slices.EqualFunc(recorded, observed, sameVerdict) { // as nearly always
		return false
	}
	for i := range observed {
		o := &observed[i]
		if conditionOf(observed, o.Type) != o {
			continue // a second one of its type
		}
		r := conditionOf(recorded, o.Type)
		if r == nil || !sameVerdict(*r, *o) {
			return true
		}
	}
	return false
}

// sameVerdict says whether two conditions say the same of a Node.
func sameVerdict(a, b corev1.NodeCondition) bool {
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
