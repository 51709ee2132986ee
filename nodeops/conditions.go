// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Transition says what counts as a transition of a condition, that is, when its
// LastTransitionTime moves.
type Transition uint8

const (
	// OnStatusOrReason moves the time when the status or the reason changes. It is the
	// zero value and the rule of the reference system, and it is kept because the
	// conditions InPlaceUpdate and Preserved are always (or nearly always) True and carry
	// their progress in the reason: other controllers measure from the last step.
	OnStatusOrReason Transition = iota
	// OnStatus moves the time only when the status changes, as the conventions of the
	// Kubernetes API ask. It is the right rule for a condition of one's own whose reason
	// explains the status, and is not a step of its own.
	OnStatus
)

// String returns the name of the rule.
func (t Transition) String() string {
	if t == OnStatus {
		return "OnStatus"
	}
	return "OnStatusOrReason"
}

// happened reports whether next is a transition away from old.
func (t Transition) happened(old, next *corev1.NodeCondition) bool {
	return old.Status != next.Status || (t != OnStatus && old.Reason != next.Reason)
}

// GetCondition returns a copy of the node's condition of the given type, or nil if it has
// none or node is nil.
func GetCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	if node == nil {
		return nil
	}
	i := indexOfCondition(node.Status.Conditions, conditionType)
	if i < 0 {
		return nil
	}
	found := node.Status.Conditions[i]
	return &found
}

// CloneAndAddCondition returns a copy of conditions that contains condition: in the place of
// the one of the same type, or at the end if there was none. A condition without a type or a
// status is left out, and the copy equals conditions.
//
// LastTransitionTime follows [OnStatusOrReason]: while neither status nor reason changes, the
// recorded time stays, unless it is zero or later than the new one, which says that a clock
// was ahead. Apart from that the times are stored as given, and
// a zero time stays zero, because this function does not know what time it is;
// [SetCondition] does.
//
// The name and signature are those of the reference system, which however moves a known
// condition to the end and returns the very slice it was given if there is nothing to add.
func CloneAndAddCondition(conditions []corev1.NodeCondition, condition corev1.NodeCondition) []corev1.NodeCondition {
	if condition.Type == "" || condition.Status == "" {
		return slices.Clone(conditions)
	}
	i := indexOfCondition(conditions, condition.Type)
	if i >= 0 {
		old := &conditions[i]
		ahead := !condition.LastTransitionTime.IsZero() && old.LastTransitionTime.After(condition.LastTransitionTime.Time)
		if !OnStatusOrReason.happened(old, &condition) && !old.LastTransitionTime.IsZero() && !ahead {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return replaceCondition(conditions, i, &condition)
}

// AddOrUpdateCondition returns a deep copy of node with condition added to its status or
// updated there by the rules of [CloneAndAddCondition]. A nil node gives nil.
func AddOrUpdateCondition(node *corev1.Node, condition corev1.NodeCondition) *corev1.Node {
	if node == nil {
		return nil
	}
	out := node.DeepCopy()
	out.Status.Conditions = CloneAndAddCondition(node.Status.Conditions, condition)
	return out
}

// SetCondition returns a copy of conditions that contains condition, in the place of the one
// of the same type or at the end, and whether the copy differs from what was given. A
// condition without a type or a status changes nothing.
//
// No zero time is stored, unless now is zero. A zero LastHeartbeatTime means "no news": the recorded one
// stays, or is now if there is none. LastTransitionTime stays as recorded while the rule sees no
// transition; on a transition it is the given time or, if that is zero or not after
// the recorded one (as in a changed copy of the old condition), now.
func SetCondition(
	conditions []corev1.NodeCondition, condition corev1.NodeCondition, rule Transition, now time.Time,
) (_ []corev1.NodeCondition, changed bool) {
	if condition.Type == "" || condition.Status == "" {
		return slices.Clone(conditions), false
	}
	i := indexOfCondition(conditions, condition.Type)
	if i >= 0 {
		inheritTimes(&conditions[i], &condition, rule)
	}
	if condition.LastHeartbeatTime.IsZero() {
		condition.LastHeartbeatTime = metav1.NewTime(now)
	}
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = metav1.NewTime(now)
	}
	out := replaceCondition(conditions, i, &condition)
	changed = len(out) != len(conditions) || !sameCondition(&conditions[i], &condition)
	return out, changed
}

// inheritTimes gives next the times of old that still hold, and clears a transition time
// that cannot be right.
func inheritTimes(old, next *corev1.NodeCondition, rule Transition) {
	if next.LastHeartbeatTime.IsZero() {
		next.LastHeartbeatTime = old.LastHeartbeatTime
	}
	switch {
	case !rule.happened(old, next):
		if !old.LastTransitionTime.IsZero() {
			next.LastTransitionTime = old.LastTransitionTime
		}
	case !next.LastTransitionTime.After(old.LastTransitionTime.Time):
		next.LastTransitionTime = metav1.Time{}
	}
}

// replaceCondition returns a new slice in which c stands at index i, or at the end if i is
// negative. Further entries of the same type are dropped. It allocates once.
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

// sameCondition reports whether two conditions say the same, with times compared as instants.
func sameCondition(a, b *corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.LastHeartbeatTime.Time.Equal(b.LastHeartbeatTime.Time) &&
		a.LastTransitionTime.Time.Equal(b.LastTransitionTime.Time)
}
