// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// An UpdateStage says how far the update in place of one machine has come.
type UpdateStage string

const (
	// NotUpdating says that nothing has begun. It is the empty stage.
	NotUpdating UpdateStage = ""
	// UpdateCandidate says that the Node waits to be selected, or was selected and
	// nothing has come of it yet.
	UpdateCandidate UpdateStage = "Candidate"
	// UpdateStarted says that the Node is being drained or updated.
	UpdateStarted UpdateStage = "Started"
	// UpdateFailed says that the update failed or took too long. The machine is of no
	// use until its Node says otherwise, or until it is replaced.
	UpdateFailed UpdateStage = "Failed"
	// UpdateDone says that the update succeeded, and the machine is still in its old
	// set.
	UpdateDone UpdateStage = "Done"
	// UpdateMoved says that the machine has come to its set by an update, and is not
	// acknowledged there yet.
	UpdateMoved UpdateStage = "Moved"
)

// StageOf returns the stage of a machine, from its label, phase and conditions and
// from the labels and conditions of its Node. A Node that is not known is nil; what
// it would say is then left out. A nil machine is at no stage.
//
// A machine that has moved is UpdateMoved whatever its Node says. So the marks of
// one update are never taken for the result of the next.
func StageOf(m *v1alpha1.Machine, node *corev1.Node) UpdateStage {
	if m == nil {
		return NotUpdating
	}
	phase, step, result := m.Status.CurrentStatus.Phase, stepOf(m.Status.Conditions), ""
	if node != nil {
		result = node.Labels[v1alpha1.LabelKeyNodeUpdateResult]
	}
	successful := result == v1alpha1.LabelValueNodeUpdateSuccessful
	switch {
	case machineset.Transferred(m):
		return UpdateMoved
	case successful && step == v1alpha1.UpdateSuccessful && phase != v1alpha1.MachineInPlaceUpdating:
		return UpdateDone
	case successful, phase == v1alpha1.MachineInPlaceUpdating:
		return UpdateStarted
	case phase == v1alpha1.MachineInPlaceUpdateFailed, result == v1alpha1.LabelValueNodeUpdateFailed:
		return UpdateFailed
	case node == nil:
		return NotUpdating
	case begun(stepOf(node.Status.Conditions)):
		return UpdateStarted
	case hasLabel(node, v1alpha1.LabelKeyNodeCandidateForUpdate), selected(node):
		return UpdateCandidate
	default:
		return NotUpdating
	}
}

// begun says whether a step of an update comes after the selection, and before
// the result.
func begun(step string) bool {
	switch step {
	case v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate:
		return true
	default:
		return false
	}
}

// stepOf returns how far an update has come by the reason of its condition; empty
// if there is none.
func stepOf(conditions []corev1.NodeCondition) string {
	i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeInPlaceUpdate })
	if i < 0 {
		return ""
	}
	return conditions[i].Reason
}

// selected says whether a Node is selected, by whomever. A nil Node is not.
func selected(node *corev1.Node) bool {
	return node != nil && hasLabel(node, v1alpha1.LabelKeyNodeSelectedForUpdate)
}

func hasLabel(node *corev1.Node, key string) bool {
	_, found := node.Labels[key]
	return found
}
