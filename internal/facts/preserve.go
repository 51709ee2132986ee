// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// PreserveValue returns the value of the preserve annotation that applies to a machine: now,
// when-failed, auto-preserved, false, or empty. It returns false if the value is not known. The
// first rule that applies counts:
//
//  1. Without a target cluster: the value of the machine.
//  2. The machine has no label node, and a value of its Node was applied before: not known.
//  3. The machine has no label node, or its Node does not exist: the value of the machine.
//  4. The Node was not read: not known.
//  5. The Node has the annotation: the value of the Node. Empty ends a preservation.
//  6. A value of the Node was applied before: empty, because the Node no longer has it.
//  7. Otherwise: the value of the machine.
//
// Other values count as no annotation: they neither begin a preservation nor continue one. In MCM
// such a value on the Node, and an empty one, keep the state forever. The value of a nil machine is
// not known. looked means that the Node was read, and noTarget that there is no target cluster.
func PreserveValue(m *v1alpha1.Machine, node *corev1.Node, looked, noTarget bool) (value string, known bool) {
	if m == nil {
		return "", false
	}
	own, applied := m.Annotations[v1alpha1.PreserveMachineAnnotationKey], LastApplied(m)
	if !IsPreserveValue(own) {
		own = ""
	}
	named := m.Labels[v1alpha1.NodeLabelKey] != ""
	switch {
	case noTarget:
		return own, true
	case !named && applied != "":
		return "", false
	case !named:
		return own, true
	case !looked:
		return "", false
	case node == nil || Contradicts(m, node):
		return own, true
	}
	if value, says := NodePreserveValue(node); says {
		return value, true
	}
	if applied != "" {
		return "", true
	}
	return own, true
}

// LastApplied returns the last value of the Node that was applied.
func LastApplied(m *v1alpha1.Machine) string {
	return m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey]
}

// NodePreserveValue returns the value of the annotation on the Node. It returns false if the Node
// has none, or an unknown one.
func NodePreserveValue(node *corev1.Node) (string, bool) {
	value, found := node.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	if value != "" && !IsPreserveValue(value) {
		return "", false
	}
	return value, found
}

// preserveValues are the known values of the annotation.
var preserveValues = []string{
	v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
	v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse,
}

// IsPreserveValue reports whether a value of the annotation is known.
func IsPreserveValue(value string) bool { return slices.Contains(preserveValues, value) }

// WillPreserve reports whether package machine begins a preservation of a Failed machine, by its
// annotations and those of its Node. It is false if the Node was not read.
func WillPreserve(m *v1alpha1.Machine, node *corev1.Node, looked, noTarget bool, now time.Time) bool {
	value, known := PreserveValue(m, node, looked, noTarget)
	keep, _ := JudgePreservation(value, v1alpha1.MachineFailed, time.Time{}, now)
	return known && keep
}

// JudgePreservation reports whether a preservation begins or continues. If it ends, forget reports
// whether its annotation is removed, so that it does not begin again. value is that of the
// annotation. A preservation ends at end. Zero means that none is recorded.
//
//	value          | not Failed      | Failed | ended
//	now            | keep            | keep   | stop and forget
//	when-failed    | stop            | keep   | stop and forget
//	auto-preserved | stop and forget | keep   | stop and forget
//	false, others  | stop            | stop   | stop
func JudgePreservation(value string, phase v1alpha1.MachinePhase, end, now time.Time) (keep, forget bool) {
	over, failed := !end.IsZero() && !now.Before(end), phase == v1alpha1.MachineFailed
	switch {
	case value == v1alpha1.PreserveMachineAnnotationValueFalse, !IsPreserveValue(value):
		return false, false
	case over, value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM && !failed:
		return false, true
	default:
		return failed || value == v1alpha1.PreserveMachineAnnotationValueNow, false
	}
}

// PreservedTaint is the taint that keeps pods off the Node of a preserved Failed machine.
var PreservedTaint = corev1.Taint{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule}

// StaleCondition reports whether the condition of a Node that is not preserved has to be written.
// active means that the preservation is recorded. A Node that was not preserved needs no condition.
func StaleCondition(node *corev1.Node, active bool) bool {
	c := ConditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	if c == nil {
		return active
	}
	return c.Status != corev1.ConditionFalse || c.Reason != v1alpha1.PreservationStopped
}

// PreservedAndDrained reports whether the condition Preserved of a Node, written by this package or
// MCM, says that the Node was drained. It is false for nil.
func PreservedAndDrained(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	c := ConditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	return c != nil && strings.HasPrefix(c.Message, v1alpha1.PreservedNodeDrainSuccessful)
}

// PreservationDrainStarted returns when the drain of a preserved Failed machine began: the later of
// the change to phase Failed and the time of the taint. Both are written once. Times in the future
// are ignored. Zero means that neither is known.
func PreservationDrainStarted(m *v1alpha1.Machine, node *corev1.Node, now time.Time) time.Time {
	times := []*metav1.Time{&m.Status.CurrentStatus.LastUpdateTime}
	for _, t := range node.Spec.Taints {
		if t.MatchTaint(&PreservedTaint) {
			times = append(times, t.TimeAdded)
		}
	}
	var started time.Time
	for _, t := range times {
		if t != nil && t.After(started) && recorded.Known(t.Time, now) {
			started = t.Time
		}
	}
	return started
}

// NoEnd is the recorded end of a preservation without an end: the last second of the year 9999, the
// latest that all clients can read.
var NoEnd = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// PreserveEnd returns the end of a preservation that begins at start, in whole seconds, as the API
// server stores it. Zero or less means [NoEnd].
func PreserveEnd(start time.Time, lasts time.Duration) time.Time {
	if lasts <= 0 {
		return NoEnd
	}
	return start.Add(lasts).Truncate(time.Second)
}

// PreservedUntil returns the recorded end of the preservation of a machine, or zero.
func PreservedUntil(m *v1alpha1.Machine) time.Time {
	if end := m.Status.CurrentStatus.PreserveExpiryTime; end != nil {
		return end.Time
	}
	return time.Time{}
}

// Drains reports whether a machine needs changes of the pods on its Node, of their volumes and of
// their PodDisruptionBudgets. They matter in three cases:
//
//   - The machine is being deleted.
//   - Its Node is selected for an in-place update and not drained yet.
//   - The machine is Failed and preserved, and its Node is not drained yet.
//
// It is false for a nil machine, and for a nil Node of a machine that is not being deleted.
func Drains(m *v1alpha1.Machine, node *corev1.Node) bool {
	switch {
	case m == nil:
		return false
	case !m.DeletionTimestamp.IsZero():
		return true
	case node == nil:
		return false
	case UpdateStep(node) == v1alpha1.SelectedForUpdate:
		return true
	default:
		status := m.Status.CurrentStatus
		return status.Phase == v1alpha1.MachineFailed && status.PreserveExpiryTime != nil && !PreservedAndDrained(node)
	}
}
