// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// preserveTime is how long a machine is preserved.
const preserveTime = 15 * time.Minute

// preserveRequest is a change of the preserve annotation by a user, and its time.
type preserveRequest struct {
	after time.Duration
	value string
	none  bool // remove the annotation
}

// requests returns random requests of preservation.
func requests(rng *rand.Rand) []preserveRequest {
	values := []string{
		v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValueWhenFailed, v1alpha1.PreserveMachineAnnotationValueFalse, "",
	}
	var out []preserveRequest
	for i := range 1 + rng.IntN(3) {
		r := preserveRequest{after: time.Duration(rng.Int64N(int64(20 * time.Minute))), value: values[rng.IntN(len(values))]}
		if i == 0 {
			r.after /= 10
			r.value = values[rng.IntN(4)]
		}
		r.none = i > 0 && rng.IntN(3) == 0
		out = append(out, r)
	}
	return out
}

// setPreserve sets the annotation on a machine or on its Node.
func (w *world) setPreserve(name string, r preserveRequest) {
	value := any(r.value)
	if r.none {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.PreserveMachineAnnotationKey: value}}})
	must(err)
	if w.scenario.preserveNode {
		_, err = w.nodes.CoreV1().Nodes().Patch(ofOthers, name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = w.machines.MachineV1alpha1().Machines(ns).Patch(ofOthers, name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	w.logf("a user sets the preserve annotation to %q on machine %s: %v", r.value, name, err)
	w.judge.preserve[name] = preserveState{r, w.clock.Now()}
}

// preserveState is the last request of a machine.
type preserveState struct {
	preserveRequest

	at time.Time
}

// assessPreservation checks that the recorded end of a preservation does not change, and that it
// stays while the preservation is requested.
func (w *world) assessPreservation(was, is *v1alpha1.Machine) {
	from, to := was.Status.CurrentStatus.PreserveExpiryTime, is.Status.CurrentStatus.PreserveExpiryTime
	switch {
	case from == nil || from.Equal(to):
	case to != nil:
		w.violate("end of the preservation of %s changed from %s to %s", is.Name, from, to)
	case !is.DeletionTimestamp.IsZero() || !w.clock.Now().Before(from.Time) || w.scenario.oldLists:
	default:
		last := w.judge.preserve[is.Name]
		asked := !last.none && (last.value == v1alpha1.PreserveMachineAnnotationValueNow ||
			last.value == v1alpha1.PreserveMachineAnnotationValueWhenFailed && is.Status.CurrentStatus.Phase == v1alpha1.MachineFailed)
		if asked && last.at.Before(w.clock.Now().Add(-2*time.Minute)) && w.node(is.Name) != nil {
			w.violate("preservation of %s ended early", is.Name)
		}
	}
}

// assessDrained checks that a preserved Node is marked as drained only when it is.
func (w *world) assessDrained(was, is *corev1.Node) {
	m := w.machine(is.Name)
	if saysDrained(was) || !saysDrained(is) || m == nil || w.mayForce(m, is) || w.scenario.oldLists {
		return
	}
	for _, pod := range all[*corev1.Pod](w.target, "pods") {
		if pod.Spec.NodeName == is.Name && pod.Status.Phase == corev1.PodRunning {
			w.violate("node %s is marked as drained while pod %s is on it", is.Name, pod.Name)
		}
	}
}

func saysDrained(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.NodePreserved && strings.HasPrefix(c.Message, "Preserved node drained")
	})
}

// checkUnpreserved checks that nothing of a preservation is left.
func (w *world) checkUnpreserved(m *v1alpha1.Machine, node *corev1.Node) {
	if end := m.Status.CurrentStatus.PreserveExpiryTime; end != nil {
		w.violate("at the end %s is preserved until %s", m.Name, end)
	}
	for _, o := range []metav1.Object{m, node} {
		if o.GetAnnotations()[v1alpha1.PreserveMachineAnnotationKey] == v1alpha1.PreserveMachineAnnotationValueNow {
			w.violate("at the end %s has the preserve annotation now", m.Name)
		}
	}
	for _, key := range []string{v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey, v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey} {
		if value, has := node.Annotations[key]; has {
			w.violate("at the end node %s has %s=%s", node.Name, key, value)
		}
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNodePreserved }) {
		w.violate("at the end node %s has the taint of preserved Nodes", node.Name)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodePreserved && c.Status != corev1.ConditionFalse {
			w.violate("at the end node %s has condition %s", node.Name, c.Type)
		}
	}
}
