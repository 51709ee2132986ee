// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// JudgeHealth reports whether a Node is healthy, and returns the bad conditions. Ready must be
// True. Conditions of the listed types must be False or missing. Unlike in MCM, a Node without
// Ready is unhealthy.
func JudgeHealth(conditions []corev1.NodeCondition, types []corev1.NodeConditionType) (healthy bool, bad []corev1.NodeCondition) {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type != corev1.NodeReady && c.Status != corev1.ConditionFalse && slices.Contains(types, c.Type) {
			bad = append(bad, c)
		}
	}
	return len(bad) == 0 && ConditionOf(conditions, corev1.NodeReady) != nil, bad
}

// ConditionList returns the conditions as a text for people.
func ConditionList(conditions []corev1.NodeCondition) string {
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

// CriticalTaint reports whether critical components of the Node are not ready.
func CriticalTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintNodeCriticalComponentsNotReady && t.Effect == corev1.TaintEffectNoSchedule
	})
}

// NotReadySince returns when the Node of a machine stopped being Ready. If that is not recorded, or
// is after latest, it returns the other time.
func NotReadySince(s *v1alpha1.MachineStatus, latest, otherwise time.Time) time.Time {
	ready := ConditionOf(s.Conditions, corev1.NodeReady)
	if ready == nil || ready.Status == corev1.ConditionTrue || !recorded.Known(ready.LastTransitionTime.Time, latest) {
		return otherwise
	}
	return ready.LastTransitionTime.Time
}

// UnreachableFrom returns when a Node with these conditions becomes unreachable: after it has not been
// ready, or its file system has been read-only, for a while. Zero means never.
func UnreachableFrom(conditions []corev1.NodeCondition, after time.Duration) time.Time {
	var from time.Time
	for _, c := range conditions {
		bad := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type == "ReadonlyFilesystem" && c.Status != corev1.ConditionFalse
		if bad && !c.LastTransitionTime.IsZero() {
			from = machinist.Earliest(from, c.LastTransitionTime.Add(after))
		}
	}
	return from
}

// ReadyAgain returns when the Node of a Failed machine became Ready after the machine failed, outside of
// an in-place update. It is zero for a machine that is not Failed, and for the Node of another machine.
func ReadyAgain(m *v1alpha1.Machine, node *corev1.Node, now time.Time) time.Time {
	if m == nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineFailed || !m.DeletionTimestamp.IsZero() || node == nil || Contradicts(m, node) {
		return time.Time{}
	}
	failed, ready := m.Status.CurrentStatus.LastUpdateTime, ConditionOf(node.Status.Conditions, corev1.NodeReady)
	if !recorded.Known(failed.Time, now) || ready == nil || ready.Status != corev1.ConditionTrue ||
		!ready.LastTransitionTime.After(failed.Time) || ConditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate) != nil {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}
