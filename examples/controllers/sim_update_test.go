// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Other clients in an update in place: they select one Node at a time, the agent of the
// Node reports the result, and they clean up.

// updateStep returns the step of the update of a Node.
func updateStep(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeInPlaceUpdate {
			return c.Reason
		}
	}
	return ""
}

func (w *world) patchNode(node string, patch map[string]any) {
	data, err := json.Marshal(patch)
	must(err)
	_, err = w.nodes.CoreV1().Nodes().Patch(ofOthers, node, types.MergePatchType, data, metav1.PatchOptions{})
	w.logf("another client writes node %s %s: %v", node, data, err) // the Node may be deleted
}

func nodeLabels(of map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": of}}
}

// beginUpdate selects a Node for an update once no other Node is being updated.
func (w *world) beginUpdate(node string) {
	w.patchNode(node, nodeLabels(map[string]any{v1alpha1.LabelKeyNodeCandidateForUpdate: "true"}))
	w.later(w.scenario.updateAfter, func() { w.selectForUpdate(node) })
}

func (w *world) selectForUpdate(node string) {
	selected := func(n *corev1.Node) bool { _, is := n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]; return is }
	n := w.node(node)
	switch {
	case n == nil || selected(n):
	case slices.ContainsFunc(all[*corev1.Node](w.target, "nodes"), selected):
		w.later(10*time.Second, func() { w.selectForUpdate(node) })
	default:
		w.patchNode(node, nodeLabels(map[string]any{v1alpha1.LabelKeyNodeSelectedForUpdate: "true"}))
	}
}

// agent simulates the agent of a Node after a change of the Node.
func (w *world) agent(was, is *corev1.Node) {
	if was == nil || updateStep(was) == updateStep(is) || updateStep(is) != v1alpha1.ReadyForUpdate {
		return
	}
	result := v1alpha1.LabelValueNodeUpdateSuccessful
	if w.scenario.updateFails {
		result = v1alpha1.LabelValueNodeUpdateFailed
	}
	w.later(20*time.Second, func() { w.patchNode(is.Name, nodeLabels(map[string]any{v1alpha1.LabelKeyNodeUpdateResult: result})) })
}

// followUpdate simulates the other clients after a change of the phase.
func (w *world) followUpdate(m *v1alpha1.Machine) {
	switch m.Status.CurrentStatus.Phase { //nolint:exhaustive // other phases change nothing
	case v1alpha1.MachineRunning:
		if w.scenario.updates && !w.judge.updated[m.Name] {
			w.judge.updated[m.Name] = true
			w.later(5*time.Second, func() { w.beginUpdate(m.Name) })
		}
	case v1alpha1.MachineInPlaceUpdateFailed: // the agent repeats the update
		w.later(30*time.Second, func() {
			w.patchNode(m.Name, nodeLabels(map[string]any{v1alpha1.LabelKeyNodeUpdateResult: v1alpha1.LabelValueNodeUpdateSuccessful}))
		})
	case v1alpha1.MachineInPlaceUpdateSuccessful:
		if w.scenario.rollout != nil {
			return // the deployment cleans up
		}
		w.later(10*time.Second, func() {
			patch := nodeLabels(map[string]any{
				v1alpha1.LabelKeyNodeCandidateForUpdate: nil, v1alpha1.LabelKeyNodeSelectedForUpdate: nil, v1alpha1.LabelKeyNodeUpdateResult: nil,
			})
			patch["spec"] = map[string]any{"unschedulable": nil}
			w.patchNode(m.Name, patch)
		})
	}
}

// assessUpdate checks that an update begins only on a drained Node, after the machine has recorded
// that.
func (w *world) assessUpdate(was, is *v1alpha1.Machine) {
	node := w.node(is.Name)
	if was.Status.CurrentStatus.Phase == is.Status.CurrentStatus.Phase || is.Status.CurrentStatus.Phase != v1alpha1.MachineInPlaceUpdating || node == nil {
		return
	}
	for _, pod := range all[*corev1.Pod](w.target, "pods") {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase == corev1.PodRunning && !w.mayForce(is, node) {
			w.violate("machine %s updated in place while pod %s is on it", is.Name, pod.Name)
		}
	}
}

// assessReady checks that a Node is marked as ready for its update only while its machine is being
// updated.
func (w *world) assessReady(was, is *corev1.Node) {
	m := w.machine(is.Name)
	step := updateStep(is)
	if updateStep(was) == step || step != v1alpha1.DrainSuccessful && step != v1alpha1.ReadyForUpdate || m == nil || w.scenario.oldLists {
		return
	}
	if m.Status.CurrentStatus.Phase != v1alpha1.MachineInPlaceUpdating {
		w.violate("node %s is %s while its machine is in phase %q", is.Name, step, m.Status.CurrentStatus.Phase)
	}
}

// assessEviction checks that pods are evicted only during a drain.
func (w *world) assessEviction(pod *corev1.Pod) {
	node, m := w.node(pod.Spec.NodeName), w.machine(pod.Spec.NodeName)
	if node == nil || w.scenario.oldLists {
		return
	}
	if m == nil || w.drainStarted(m, node).IsZero() {
		w.violate("pod %s evicted from node %s without a drain", pod.Name, node.Name)
	}
}

// drainStarted returns when the drain of a Node was requested. Zero means that it was not. A deletion
// of the machine at this moment does not begin a drain for an update anew: the pass knows nothing of
// it.
func (w *world) drainStarted(m *v1alpha1.Machine, node *corev1.Node) time.Time {
	status, deleted := m.Status.CurrentStatus, m.DeletionTimestamp
	switch {
	case deleted != nil && deleted.Time.Before(w.clock.Now()):
		return deleted.Time
	case status.Phase == v1alpha1.MachineFailed && status.PreserveExpiryTime != nil:
		return status.LastUpdateTime.Time
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeInPlaceUpdate && c.Reason == v1alpha1.SelectedForUpdate {
			return c.LastTransitionTime.Time
		}
	}
	if deleted != nil {
		return deleted.Time
	}
	return time.Time{}
}

// checkUpdated checks that an update in place has ended.
func (w *world) checkUpdated(node *corev1.Node) {
	if w.scenario.updates && (updateStep(node) != v1alpha1.UpdateSuccessful || node.Spec.Unschedulable) {
		w.violate("at the end the update in place of node %s is at %q", node.Name, updateStep(node))
	}
}
