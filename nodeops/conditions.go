// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
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

// GetNodeCondition reads the Node and returns its condition of the given type, or nil if there is
// none. Errors of the API server are wrapped.
func GetNodeCondition(
	ctx context.Context, c kubernetes.Interface, nodeName string, conditionType corev1.NodeConditionType,
) (*corev1.NodeCondition, error) {
	nodes, err := nodesOf(c, nodeName)
	if err != nil {
		return nil, err
	}
	node, err := nodes.Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", nodeName, err)
	}
	return GetCondition(node, conditionType), nil
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

// AddOrUpdateConditionsOnNode stores condition in the status of the Node, with the retries and
// errors of [UpdateNode]. It writes nothing if the Node has the condition already.
//
// A zero LastHeartbeatTime keeps the stored one. LastTransitionTime changes when the status or
// the reason changes: to the given time, or to the present time if the given one is zero or not
// after the stored one. No zero time is stored.
func AddOrUpdateConditionsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, condition corev1.NodeCondition) error {
	_, _, err := updateNodeStatus(ctx, c, nodeName, func(node *corev1.Node) (changed bool, _ error) {
		node.Status.Conditions, changed = setCondition(node.Status.Conditions, condition, time.Now())
		return changed, nil
	})
	return err
}

// setCondition is CloneAndAddCondition without zero times. It also returns whether the copy
// differs from conditions.
func setCondition(conditions []corev1.NodeCondition, condition corev1.NodeCondition, now time.Time) (_ []corev1.NodeCondition, changed bool) {
	if condition.Type == "" || condition.Status == "" {
		return conditions, false
	}
	i := indexOfCondition(conditions, condition.Type)
	if i >= 0 {
		inheritTimes(&conditions[i], &condition)
	}
	if condition.LastHeartbeatTime.IsZero() {
		condition.LastHeartbeatTime = metav1.NewTime(now)
	}
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = metav1.NewTime(now)
	}
	out := replaceCondition(conditions, i, &condition)
	return out, len(out) != len(conditions) || !sameCondition(&conditions[i], &condition)
}

// inheritTimes copies the times that stay from old to next, and clears a transition time that is
// not after that of old.
func inheritTimes(old, next *corev1.NodeCondition) {
	if next.LastHeartbeatTime.IsZero() {
		next.LastHeartbeatTime = old.LastHeartbeatTime
	}
	switch {
	case !transition(old, next):
		if !old.LastTransitionTime.IsZero() {
			next.LastTransitionTime = old.LastTransitionTime
		}
	case !next.LastTransitionTime.After(old.LastTransitionTime.Time):
		next.LastTransitionTime = metav1.Time{}
	}
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

// sameCondition reports whether two conditions are equal.
func sameCondition(a, b *corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.LastHeartbeatTime.Time.Equal(b.LastHeartbeatTime.Time) &&
		a.LastTransitionTime.Time.Equal(b.LastTransitionTime.Time)
}
