// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// updateStage is the state of the in-place update of one machine.
type updateStage string

const (
	// notUpdating means that no update has begun. It is the empty stage.
	notUpdating updateStage = ""
	// updateCandidate means that the Node waits for its selection, or was selected and the update
	// has not begun.
	updateCandidate updateStage = "Candidate"
	// updateStarted means that the Node is being drained or updated.
	updateStarted updateStage = "Started"
	// updateFailed means that the update failed or took too long. The machine is unavailable until
	// its Node changes or it is replaced.
	updateFailed updateStage = "Failed"
	// updateDone means that the update succeeded and the machine is still in its old set.
	updateDone updateStage = "Done"
	// updateMoved means that the machine moved to its set after an update and is not acknowledged.
	updateMoved updateStage = "Moved"
)

// stageOf returns the stage of a machine, from the labels and conditions of the machine and its
// Node. A Node that is not known is nil. A machine that moved has the stage updateMoved in any
// case, so that the marks of one update are not taken for the result of the next.
func stageOf(m *v1alpha1.Machine, node *corev1.Node) updateStage {
	phase, step, result := m.Status.CurrentStatus.Phase, stepOf(m.Status.Conditions), ""
	if node != nil {
		result = node.Labels[v1alpha1.LabelKeyNodeUpdateResult]
	}
	successful := result == v1alpha1.LabelValueNodeUpdateSuccessful
	switch {
	case members.Transferred(m):
		return updateMoved
	case successful && step == v1alpha1.UpdateSuccessful && phase != v1alpha1.MachineInPlaceUpdating:
		return updateDone
	case successful, phase == v1alpha1.MachineInPlaceUpdating:
		return updateStarted
	case phase == v1alpha1.MachineInPlaceUpdateFailed, result == v1alpha1.LabelValueNodeUpdateFailed:
		return updateFailed
	case node == nil:
		return notUpdating
	case begun(stepOf(node.Status.Conditions)):
		return updateStarted
	case hasLabel(node, v1alpha1.LabelKeyNodeCandidateForUpdate), selected(node):
		return updateCandidate
	default:
		return notUpdating
	}
}

// begun reports whether a step is after the selection and before the result.
func begun(step string) bool {
	switch step {
	case v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate:
		return true
	default:
		return false
	}
}

// stepOf returns the reason of the condition of the update, or an empty text.
func stepOf(conditions []corev1.NodeCondition) string {
	i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeInPlaceUpdate })
	if i < 0 {
		return ""
	}
	return conditions[i].Reason
}

// selected reports whether a Node is selected for an update. A nil Node is not.
func selected(node *corev1.Node) bool {
	return node != nil && hasLabel(node, v1alpha1.LabelKeyNodeSelectedForUpdate)
}

func hasLabel(node *corev1.Node, key string) bool {
	_, found := node.Labels[key]
	return found
}

// updatingMachines returns the machines whose update has begun or may begin at any time. They count
// as unavailable in any phase.
func updatingMachines(in Observation, machines []*v1alpha1.Machine) map[*v1alpha1.Machine]bool {
	var out map[*v1alpha1.Machine]bool
	for _, m := range machines {
		if node, _ := in.nodeOf(m); underWay(node, stageOf(m, node)) {
			if out == nil {
				out = map[*v1alpha1.Machine]bool{}
			}
			out[m] = true
		}
	}
	return out
}

// underWay reports whether an update has begun or may begin at any time. After success it has
// ended, although the Node is still to be uncordoned.
func underWay(node *corev1.Node, stage updateStage) bool {
	return stage == updateStarted || selected(node) && !succeeded(node)
}

// succeeded reports whether the update of a Node succeeded.
func succeeded(node *corev1.Node) bool {
	return node.Labels[v1alpha1.LabelKeyNodeUpdateResult] == v1alpha1.LabelValueNodeUpdateSuccessful
}

// unlabel removes the labels of a candidate from a Node.
func unlabel(n *corev1.Node) {
	delete(n.Labels, v1alpha1.LabelKeyNodeCandidateForUpdate)
	delete(n.Labels, v1alpha1.LabelKeyNodeSelectedForUpdate)
}

// gardenerPool is the label that Gardener gives the Nodes of its worker pools.
const gardenerPool = "worker.gardener.cloud/pool"

// awaitsComponents reports whether a controller removes the taint of critical components from the Node
// of a machine: Gardener does for its worker pools, and a node template with the taint asks for it. On
// other Nodes the taint would stay for ever. (MCM adds it to every updated Node.)
func awaitsComponents(m *v1alpha1.Machine, node *corev1.Node) bool {
	return hasLabel(node, gardenerPool) || nodeops.HasTaint(m.Spec.NodeTemplateSpec.Spec.Taints, criticalComponents)
}

var criticalComponents = corev1.Taint{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}

// uncordonUpdated ends the update of a Node: it removes the labels and makes the Node schedulable, on
// Nodes that await critical components once these are ready. Cordons of other owners stay.
func uncordonUpdated(node *corev1.Node, awaits bool) {
	unlabel(node)
	delete(node.Labels, v1alpha1.LabelKeyNodeUpdateResult)
	delete(node.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason)
	if !slices.ContainsFunc(nodeops.Cordons(node), nodeops.Claim.Unschedulable) {
		node.Spec.Unschedulable = false
	}
	taints, _ := nodeops.RemoveTaint(node.Spec.Taints, corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectPreferNoSchedule})
	if awaits {
		taints, _ = nodeops.SetTaint(taints, criticalComponents)
	}
	node.Spec.Taints = taints
}

// labeled reports whether a Node has labels of an update.
func labeled(node *corev1.Node) bool {
	return hasLabel(node, v1alpha1.LabelKeyNodeCandidateForUpdate) || selected(node) ||
		hasLabel(node, v1alpha1.LabelKeyNodeUpdateResult)
}
