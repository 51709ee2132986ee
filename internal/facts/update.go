// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// UpdateCondition returns the condition InPlaceUpdate for the labels of a Node, with the times now.
// It returns false if the Node has the condition already, or needs none. A Node needs none without
// the label candidate-for-update. With its value "replace" the machine waits for its replacement.
// The first rule that applies counts:
//
//	no condition, or UpdateSuccessful without a result    CandidateForUpdate
//	CandidateForUpdate, and selected                      SelectedForUpdate
//	SelectedForUpdate, and selected                       unchanged
//	result successful                                     UpdateSuccessful
//	result failed                                         UpdateFailed, with the reason of the Node
//
// The steps DrainSuccessful and ReadyForUpdate follow from the drain, and not from labels. It
// returns false for a nil Node.
func UpdateCondition(node *corev1.Node, now time.Time) (corev1.NodeCondition, bool) {
	if node == nil {
		return corev1.NodeCondition{}, false
	}
	value, candidate := node.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate]
	if !candidate || value == v1alpha1.LabelValueNodeCandidateForReplacement {
		return corev1.NodeCondition{}, false
	}
	step := UpdateStep(node)
	_, selected := node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]
	result, concluded := node.Labels[v1alpha1.LabelKeyNodeUpdateResult]
	switch {
	case ConditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate) == nil, step == v1alpha1.UpdateSuccessful && !concluded:
		return StepCondition(v1alpha1.CandidateForUpdate, "Node is a candidate for in-place update", now), true
	case selected && step == v1alpha1.CandidateForUpdate:
		return StepCondition(v1alpha1.SelectedForUpdate, "Node is selected for in-place update", now), true
	case selected && step == v1alpha1.SelectedForUpdate:
		return corev1.NodeCondition{}, false
	case result == v1alpha1.LabelValueNodeUpdateSuccessful && step != v1alpha1.UpdateSuccessful:
		return StepCondition(v1alpha1.UpdateSuccessful, "Node in-place update successful", now), true
	case result == v1alpha1.LabelValueNodeUpdateFailed && step != v1alpha1.UpdateFailed:
		return StepCondition(v1alpha1.UpdateFailed,
			"Node in-place update failed: "+node.Annotations[v1alpha1.AnnotationKeyMachineUpdateFailedReason], now), true
	default:
		return corev1.NodeCondition{}, false
	}
}

// UpdateStep returns the step of the in-place update of a Node: the reason of its condition. Empty
// means that there is no condition.
func UpdateStep(node *corev1.Node) string {
	if c := ConditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate); c != nil {
		return c.Reason
	}
	return ""
}

// StepCondition returns the condition InPlaceUpdate for a step, with the times now.
func StepCondition(step, message string, now time.Time) corev1.NodeCondition {
	return Condition(v1alpha1.NodeInPlaceUpdate, corev1.ConditionTrue, step, message, now)
}

// InUpdate reports whether a Node takes part in an in-place update: it has a label of one, or its
// condition is that of an update in progress or failed.
func InUpdate(node *corev1.Node) bool {
	switch UpdateStep(node) {
	case v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate, v1alpha1.UpdateFailed:
		return true
	}
	labels := []string{v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate, v1alpha1.LabelKeyNodeUpdateResult}
	return slices.ContainsFunc(labels, func(label string) bool { _, found := node.Labels[label]; return found })
}
