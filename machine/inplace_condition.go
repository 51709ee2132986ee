// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// UpdateCondition returns the condition InPlaceUpdate that the labels of a Node
// call for, with its times set to now, and false if the Node has it already or
// none is called for. The first rule that fits counts; without the label
// candidate-for-update none does, nor with its value "replace": such a machine
// waits to be replaced, and is not updated:
//
//	has no condition, or UpdateSuccessful without a result   CandidateForUpdate
//	CandidateForUpdate, and selected                         SelectedForUpdate
//	SelectedForUpdate, and selected                          stays
//	result successful                                        UpdateSuccessful
//	result failed                                            UpdateFailed, with the reason that the Node gives
//
// The steps in between, from drained to ready, follow from draining and not from
// labels. A nil Node has no condition.
func UpdateCondition(node *corev1.Node, now time.Time) (corev1.NodeCondition, bool) {
	if node == nil {
		return corev1.NodeCondition{}, false
	}
	value, candidate := node.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate]
	if !candidate || value == v1alpha1.LabelValueNodeCandidateForReplacement {
		return corev1.NodeCondition{}, false
	}
	step := updateStep(node)
	_, selected := node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]
	result, concluded := node.Labels[v1alpha1.LabelKeyNodeUpdateResult]
	switch {
	case conditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate) == nil, step == v1alpha1.UpdateSuccessful && !concluded:
		return updateCondition(v1alpha1.CandidateForUpdate, "Node is a candidate for in-place update", now), true
	case selected && step == v1alpha1.CandidateForUpdate:
		return updateCondition(v1alpha1.SelectedForUpdate, "Node is selected for in-place update", now), true
	case selected && step == v1alpha1.SelectedForUpdate:
		return corev1.NodeCondition{}, false
	case result == v1alpha1.LabelValueNodeUpdateSuccessful && step != v1alpha1.UpdateSuccessful:
		return updateCondition(v1alpha1.UpdateSuccessful, "Node in-place update successful", now), true
	case result == v1alpha1.LabelValueNodeUpdateFailed && step != v1alpha1.UpdateFailed:
		return updateCondition(v1alpha1.UpdateFailed,
			"Node in-place update failed: "+node.Annotations[v1alpha1.AnnotationKeyMachineUpdateFailedReason], now), true
	default:
		return corev1.NodeCondition{}, false
	}
}

// updateStep returns how far the update in place of a Node has come, by the reason
// of its condition; empty if it has none.
func updateStep(node *corev1.Node) string {
	if c := conditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate); c != nil {
		return c.Reason
	}
	return ""
}

func updateCondition(step, message string, now time.Time) corev1.NodeCondition {
	return condition(v1alpha1.NodeInPlaceUpdate, corev1.ConditionTrue, step, message, now)
}
