// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// updateInPlace reacts to the labels of a Node as a machine controller does, see package machine. A
// drain takes no time.
func (w *World) updateInPlace(name string) {
	m := w.Machine(name)
	n := w.Node(m)
	if n == nil || m.DeletionTimestamp != nil {
		return
	}
	if ofGardener(n) && slices.ContainsFunc(n.Spec.Taints, critical) { // its components are ready at once
		w.writeNode(n, metadataAndSpec, func(n *corev1.Node) { n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, critical) })
	}
	for {
		c, due := facts.UpdateCondition(w.Node(m), w.now)
		if !due {
			break
		}
		w.setCondition(name, c)
		if c.Reason == v1alpha1.SelectedForUpdate {
			w.beginUpdate(name)
			return
		}
	}
	w.endUpdate(name)
}

// ofGardener reports whether a Node has a controller that removes the taint of critical components.
func ofGardener(n *corev1.Node) bool { return n.Labels["worker.gardener.cloud/pool"] != "" }

func critical(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNodeCriticalComponentsNotReady }

// setCondition sets a condition of a Node and of its machine.
func (w *World) setCondition(name string, c corev1.NodeCondition) {
	w.writeNode(w.Node(w.Machine(name)), status, func(n *corev1.Node) {
		i := slices.IndexFunc(n.Status.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type })
		if i < 0 {
			n.Status.Conditions = append(n.Status.Conditions, c)
		} else {
			n.Status.Conditions[i] = c
		}
	})
	m := w.Machine(name)
	w.writeStatus(m, func(s *v1alpha1.MachineStatus) { s.Conditions = w.Node(m).DeepCopy().Status.Conditions })
}

func (w *World) beginUpdate(name string) {
	w.say("%s is being updated in place", name)
	w.writeNode(w.Node(w.Machine(name)), metadataAndSpec, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	w.enter(w.Machine(name), v1alpha1.MachineInPlaceUpdating, v1alpha1.MachineOperationInPlaceUpdate, v1alpha1.MachineStateProcessing, "it is being updated in place")
	for _, step := range []string{v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate} {
		w.setCondition(name, corev1.NodeCondition{
			Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: step,
			LastHeartbeatTime: metav1.NewTime(w.now), LastTransitionTime: metav1.NewTime(w.now),
		})
	}
	m, began := w.Machine(name), w.now
	after, ok := w.model.Update(m)
	w.after(after, name, m.UID, func(w *World, name string) {
		m := w.Machine(name)
		if n := w.Node(m); n != nil && inState(m, v1alpha1.MachineInPlaceUpdating, began) {
			w.tellResult(n, ok)
		}
	})
}

// tellResult sets the labels of the agent on a Node at the end of an update.
func (w *World) tellResult(n *corev1.Node, ok bool) {
	w.writeNode(n, metadataAndSpec, func(n *corev1.Node) {
		result := v1alpha1.LabelValueNodeUpdateSuccessful
		if !ok {
			result = v1alpha1.LabelValueNodeUpdateFailed
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationKeyMachineUpdateFailedReason, "the update failed")
		}
		metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.LabelKeyNodeUpdateResult, result)
	})
}

// endUpdate reacts to the result of an update.
func (w *World) endUpdate(name string) {
	m := w.Machine(name)
	phase := m.Status.CurrentStatus.Phase
	const op = v1alpha1.MachineOperationInPlaceUpdate
	switch w.Node(m).Labels[v1alpha1.LabelKeyNodeUpdateResult] {
	case v1alpha1.LabelValueNodeUpdateSuccessful:
		if phase == v1alpha1.MachineInPlaceUpdating || phase == v1alpha1.MachineInPlaceUpdateFailed {
			w.say("%s has been updated in place", name)
			w.enter(m, v1alpha1.MachineInPlaceUpdateSuccessful, op, v1alpha1.MachineStateSuccessful, "it has been updated in place")
			w.after(0, name, m.UID, (*World).heal)
		}
	case v1alpha1.LabelValueNodeUpdateFailed:
		if phase == v1alpha1.MachineInPlaceUpdating {
			w.say("%s could not be updated in place", name)
			w.enter(m, v1alpha1.MachineInPlaceUpdateFailed, op, v1alpha1.MachineStateFailed, "it could not be updated in place")
			w.giveUp(m)
		}
	}
}

// giveUp fails a machine after its in-place update has failed.
func (w *World) giveUp(m *v1alpha1.Machine) {
	if w.model.HealthTimeout <= 0 {
		return
	}
	since := w.now
	w.after(w.model.HealthTimeout, m.Name, m.UID, func(w *World, name string) {
		if m := w.Machine(name); inState(m, v1alpha1.MachineInPlaceUpdateFailed, since) {
			w.say("%s is Failed", name)
			w.enter(m, v1alpha1.MachineFailed, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateFailed, "its update in place has failed")
		}
	})
}

// heal makes an updated machine available again.
func (w *World) heal(name string) {
	m := w.Machine(name)
	if m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineInPlaceUpdateSuccessful {
		w.say("%s is available", name)
		w.enter(m, v1alpha1.MachineRunning, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateSuccessful, "it is healthy")
	}
}
