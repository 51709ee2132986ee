// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Condition returns a condition with the time now.
func Condition(t corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) corev1.NodeCondition {
	at := metav1.NewTime(now)
	return corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
}

// ConditionOf returns the first condition of a type, or nil.
func ConditionOf(conditions []corev1.NodeCondition, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// WithCondition returns the conditions with c in place of each condition of a type. Nil removes
// them. It changes conditions.
func WithCondition(conditions []corev1.NodeCondition, t corev1.NodeConditionType, c *corev1.NodeCondition) []corev1.NodeCondition {
	conditions = slices.DeleteFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == t })
	if c != nil {
		conditions = append(conditions, *c)
	}
	return conditions
}

// SameState reports whether two conditions have the same status, reason and message. It is false for
// nil.
func SameState(a, b *corev1.NodeCondition) bool {
	return a != nil && b != nil && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// ownConditions are the types of conditions of a Machine that are not conditions of its Node.
var ownConditions = []corev1.NodeConditionType{v1alpha1.MachineValid, v1alpha1.MachineVMRequested, v1alpha1.MachineWaiting}

func ownCondition(c corev1.NodeCondition) bool { return slices.Contains(ownConditions, c.Type) }

// WithNodeConditions returns a copy of the conditions of a Node, with the machine's own conditions
// that are recorded on it.
func WithNodeConditions(node, recorded []corev1.NodeCondition) []corev1.NodeCondition {
	conditions := slices.DeleteFunc(slices.Clone(node), ownCondition)
	for _, t := range ownConditions {
		if c := ConditionOf(recorded, t); c != nil {
			conditions = append(conditions, *c)
		}
	}
	return conditions
}

// withoutOwn returns the conditions without the machine's own.
func withoutOwn(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	if !slices.ContainsFunc(conditions, ownCondition) {
		return conditions
	}
	return slices.DeleteFunc(slices.Clone(conditions), ownCondition)
}

// ConditionsChanged reports whether the conditions of a Node that are recorded on its machine are out
// of date: a type is new or missing, a status differs, or the reason of InPlaceUpdate differs.
// Heartbeats, messages and other reasons do not count, nor do the machine's own conditions.
func ConditionsChanged(recorded, observed []corev1.NodeCondition) bool {
	recorded, observed = withoutOwn(recorded), withoutOwn(observed)
	if slices.EqualFunc(recorded, observed, sameHealth) { // the usual case
		return false
	}
	return len(recorded) != len(observed) || slices.ContainsFunc(observed, func(o corev1.NodeCondition) bool {
		r := ConditionOf(recorded, o.Type)
		return r == nil || !sameHealth(*r, o)
	})
}

// sameHealth reports whether two conditions are equal for [ConditionsChanged].
func sameHealth(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && (a.Type != v1alpha1.NodeInPlaceUpdate || a.Reason == b.Reason)
}
