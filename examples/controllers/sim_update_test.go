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

// What others do of an update in place: they choose a Node, one at a time; its
// agent says how it went; and they clean up.

// updateStep is how far the update of a Node has come.
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
	w.say("another client writes node %s %s: %v", node, data, err) // it may be gone
}

func nodeLabels(of map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": of}}
}

// beginUpdate has a Node updated once no other is.
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

// agent is what the agent on a Node does because the Node has changed.
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

// followUpdate is what others do because of the phase of a machine.
func (w *world) followUpdate(m *v1alpha1.Machine) {
	switch m.Status.CurrentStatus.Phase { //nolint:exhaustive // other phases change nothing
	case v1alpha1.MachineRunning:
		if w.scenario.updates && !w.judge.updated[m.Name] {
			w.judge.updated[m.Name] = true
			w.later(5*time.Second, func() { w.beginUpdate(m.Name) })
		}
	case v1alpha1.MachineInPlaceUpdateFailed: // the agent tries again
		w.later(30*time.Second, func() {
			w.patchNode(m.Name, nodeLabels(map[string]any{v1alpha1.LabelKeyNodeUpdateResult: v1alpha1.LabelValueNodeUpdateSuccessful}))
		})
	case v1alpha1.MachineInPlaceUpdateSuccessful:
		if w.scenario.rollout != nil {
			return // its deployment does
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

// assessUpdate judges that the agent may act only when the Node is drained, and
// that the machine says so first.
func (w *world) assessUpdate(was, is *v1alpha1.Machine) {
	node := w.node(is.Name)
	if was.Status.CurrentStatus.Phase == is.Status.CurrentStatus.Phase || is.Status.CurrentStatus.Phase != v1alpha1.MachineInPlaceUpdating || node == nil {
		return
	}
	for _, pod := range all[*corev1.Pod](w.target, "pods") {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase == corev1.PodRunning && !w.mayForce(is, node) {
			w.wrong("machine %s is updated in place with pod %s on it", is.Name, pod.Name)
		}
	}
}

// assessReady judges that a Node is said to be ready for its update only when its
// machine is being updated.
func (w *world) assessReady(was, is *corev1.Node) {
	m := w.machine(is.Name)
	step := updateStep(is)
	if updateStep(was) == step || step != v1alpha1.DrainSuccessful && step != v1alpha1.ReadyForUpdate || m == nil || w.scenario.oldLists {
		return
	}
	if m.Status.CurrentStatus.Phase != v1alpha1.MachineInPlaceUpdating {
		w.wrong("node %s is %s, and its machine in phase %q", is.Name, step, m.Status.CurrentStatus.Phase)
	}
}

// assessEviction judges that pods are evicted only for a reason.
func (w *world) assessEviction(pod *corev1.Pod) {
	node, m := w.node(pod.Spec.NodeName), w.machine(pod.Spec.NodeName)
	if node == nil || w.scenario.oldLists {
		return
	}
	if m == nil || w.drainStarted(m, node).IsZero() {
		w.wrong("pod %s is evicted from node %s, which nothing is to drain", pod.Name, node.Name)
	}
}

// drainStarted returns since when a Node is to be drained, or zero.
func (w *world) drainStarted(m *v1alpha1.Machine, node *corev1.Node) time.Time {
	status := m.Status.CurrentStatus
	switch {
	case !m.DeletionTimestamp.IsZero():
		return m.DeletionTimestamp.Time
	case status.Phase == v1alpha1.MachineFailed && status.PreserveExpiryTime != nil:
		return status.LastUpdateTime.Time
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeInPlaceUpdate && c.Reason == v1alpha1.SelectedForUpdate {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// checkUpdated judges that an update in place has come to its end.
func (w *world) checkUpdated(node *corev1.Node) {
	if w.scenario.updates && (updateStep(node) != v1alpha1.UpdateSuccessful || node.Spec.Unschedulable) {
		w.wrong("node %s rests with its update in place at %q", node.Name, updateStep(node))
	}
}
