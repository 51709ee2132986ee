// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CloneAndAddCondition returns a copy of conditions that contains condition, in place of the one
// of the same type or at the end. A condition without a type or a status is not added.
//
// LastTransitionTime changes when the status or the reason changes, as in MCM: the conditions
// InPlaceUpdate and Preserved have their progress in the reason. While neither changes, the
// earlier time stays, unless it is zero or later than the new one. Otherwise times are stored as
// given, and a zero time stays zero.
//
// Name and signature are those of MCM, which moves a known condition to the end, and returns its
// argument if there is nothing to add.
func CloneAndAddCondition(conditions []corev1.NodeCondition, condition corev1.NodeCondition) []corev1.NodeCondition {
	if condition.Type == "" || condition.Status == "" {
		return slices.Clone(conditions)
	}
	i := indexOfCondition(conditions, condition.Type)
	if i >= 0 {
		old := &conditions[i]
		ahead := !condition.LastTransitionTime.IsZero() && old.LastTransitionTime.After(condition.LastTransitionTime.Time)
		if !transition(old, &condition) && !old.LastTransitionTime.IsZero() && !ahead {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return replaceCondition(conditions, i, &condition)
}

// GetCondition returns a copy of the condition of the given type, or nil if there is none.
func GetCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	if node == nil {
		return nil
	}
	if i := indexOfCondition(node.Status.Conditions, conditionType); i >= 0 {
		return node.Status.Conditions[i].DeepCopy()
	}
	return nil
}

// transition reports whether the status or the reason differs.
func transition(old, next *corev1.NodeCondition) bool {
	return old.Status != next.Status || old.Reason != next.Reason
}

// replaceCondition returns a new slice with c at index i, or at the end if i is negative, without
// other entries of the same type. It allocates once.
func replaceCondition(conditions []corev1.NodeCondition, i int, c *corev1.NodeCondition) []corev1.NodeCondition {
	if i < 0 {
		out := make([]corev1.NodeCondition, len(conditions)+1)
		out[copy(out, conditions)] = *c
		return out
	}
	out := make([]corev1.NodeCondition, len(conditions))
	copy(out, conditions[:i])
	out[i] = *c
	n := i + 1
	for k := i + 1; k < len(conditions); k++ {
		if conditions[k].Type != c.Type {
			out[n] = conditions[k]
			n++
		}
	}
	return out[:n:n]
}

// indexOfCondition returns the index of the first condition of the type, or -1.
func indexOfCondition(conditions []corev1.NodeCondition, conditionType corev1.NodeConditionType) int {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return i
		}
	}
	return -1
}
