// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// inPlaceUpdate returns the next step of an in-place update. Other controllers label the Node as a
// candidate and select it. Then it is drained, the agent on the Node updates it, and labels it with
// the result. Other controllers remove the labels. The condition InPlaceUpdate of the Node is the
// step, and the phase of the machine follows it.
//
// The step is applied before the result, so that the result of an earlier update does not end a
// later one.
func (l *logic) inPlaceUpdate() Decision {
	node := l.in.Node.Node
	if c, due := facts.UpdateCondition(node, l.now); due {
		return l.writeCondition(c, reasonInPlaceUpdate)
	}
	if d := l.correctUpdatePhase(node); d.Reason != "" {
		return d
	}
	switch step := facts.UpdateStep(node); step {
	case v1alpha1.SelectedForUpdate:
		since := facts.ConditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate).LastTransitionTime
		if !recorded.Known(since.Time, l.now) { // the drain begins now
			return l.writeCondition(facts.StepCondition(step, "Node is selected for in-place update", l.now), reasonInPlaceUpdate)
		}
		return l.drainForUpdate(node)
	case v1alpha1.DrainSuccessful:
		return l.writeCondition(facts.StepCondition(v1alpha1.ReadyForUpdate, "Node is ready for in-place update", l.now), reasonInPlaceUpdate)
	default:
		return l.watchUpdate(node, step)
	}
}

// drainForUpdate drains a selected Node. The phase is written before the condition, because the
// agent may act only after the phase.
func (l *logic) drainForUpdate(node *corev1.Node) Decision {
	a := l.updateDrain(node)
	if l.in.Drain.of(a).Done {
		if l.phase() == v1alpha1.MachineInPlaceUpdating {
			return l.writeCondition(facts.StepCondition(v1alpha1.DrainSuccessful, "Node draining successful", l.now), reasonInPlaceUpdate)
		}
		return l.recordUpdateStep(node, reasonDrained, v1alpha1.MachineStateProcessing, "is undergoing an in-place update")
	}
	op := l.operation(v1alpha1.MachineOperationDrainNode, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain)
	return l.drain(node, a, "for its in-place update", op)
}

// recordUpdateStep writes the change of phase for why, and the conditions of the Node.
func (l *logic) recordUpdateStep(node *corev1.Node, why machinist.Reason, state v1alpha1.MachineState, text string) Decision {
	return l.move(why, l.operation(v1alpha1.MachineOperationInPlaceUpdate, state, "Machine "+l.m.Name+" "+text), l.conditionsOf(node))
}

// watchUpdate waits for the result of an in-place update, or for its timeout.
func (l *logic) watchUpdate(node *corev1.Node, step string) Decision {
	switch result := node.Labels[v1alpha1.LabelKeyNodeUpdateResult]; {
	case result == v1alpha1.LabelValueNodeUpdateSuccessful && l.moves(reasonUpdateSucceeded):
		return l.recordUpdateStep(node, reasonUpdateSucceeded, v1alpha1.MachineStateSuccessful, "successfully updated dependencies")
	case result == v1alpha1.LabelValueNodeUpdateFailed && l.moves(reasonUpdateFailed):
		return l.recordUpdateStep(node, reasonUpdateFailed, v1alpha1.MachineStateFailed,
			"failed to update dependencies: "+node.Annotations[v1alpha1.AnnotationKeyMachineUpdateFailedReason])
	}
	message, begun := updateWaits[step], l.moves(reasonUpdateTimeout)
	if !begun && message == "" {
		return Decision{}
	}
	h := machinist.Hold{Subject: "node/" + node.Name, Reason: reasonInPlaceUpdate, Message: cmp.Or(message, "its in-place update is in progress")}
	if !begun {
		return hold(h)
	}
	return l.updateTimeout(h, l.conditionsOf(node))
}

// updateWaits are the messages for the steps in which a Node waits for other controllers.
var updateWaits = map[string]string{
	v1alpha1.CandidateForUpdate: "it waits to be selected for its in-place update",
	v1alpha1.ReadyForUpdate:     "it is ready for its in-place update",
}

// updateTimeout waits for the end of an in-place update. After its timeout it records the failure,
// with the changes.
func (l *logic) updateTimeout(h machinist.Hold, changes ...func(*v1alpha1.MachineStatus)) Decision {
	if d, waits := l.timeout(h, l.p.InPlaceTimeout); waits {
		return d
	}
	return l.move(reasonUpdateTimeout, l.operation(v1alpha1.MachineOperationInPlaceUpdate, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"Machine %s failed to in-place update in %s.", l.m.Name, l.p.InPlaceTimeout)), changes...)
}
