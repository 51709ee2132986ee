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

// request is a change of the preserve annotation by a user, and its time.
type request struct {
	after time.Duration
	value string // nothing takes the annotation away
	none  bool
}

// requests draws what is said of preservation.
func requests(rng *rand.Rand) []request {
	values := []string{
		v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValueWhenFailed, v1alpha1.PreserveMachineAnnotationValueFalse, "",
	}
	var out []request
	for i := range 1 + rng.IntN(3) {
		r := request{after: time.Duration(rng.Int64N(int64(20 * time.Minute))), value: values[rng.IntN(len(values))]}
		if i == 0 {
			r.after /= 10
			r.value = values[rng.IntN(4)]
		}
		r.none = i > 0 && rng.IntN(3) == 0
		out = append(out, r)
	}
	return out
}

// tell says it of a machine, on the machine or on its Node.
func (w *world) tell(name string, r request) {
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
	w.say("a user sets the preserve annotation to %q on machine %s: %v", r.value, name, err)
	w.judge.told[name] = saying{r, w.clock.Now()}
}

// saying is what was said last of a machine.
type saying struct {
	request

	at time.Time
}

// assessPreservation judges the recorded end of a preservation: it does not move,
// and is there as long as it is asked for.
func (w *world) assessPreservation(was, is *v1alpha1.Machine) {
	from, to := was.Status.CurrentStatus.PreserveExpiryTime, is.Status.CurrentStatus.PreserveExpiryTime
	switch {
	case from == nil || from.Equal(to):
	case to != nil:
		w.wrong("the end of the preservation of %s moves from %s to %s", is.Name, from, to)
	case !is.DeletionTimestamp.IsZero() || !w.clock.Now().Before(from.Time) || w.scenario.oldLists:
	default:
		last := w.judge.told[is.Name]
		asked := !last.none && (last.value == v1alpha1.PreserveMachineAnnotationValueNow ||
			last.value == v1alpha1.PreserveMachineAnnotationValueWhenFailed && is.Status.CurrentStatus.Phase == v1alpha1.MachineFailed)
		if asked && last.at.Before(w.clock.Now().Add(-2*time.Minute)) && w.node(is.Name) != nil {
			w.wrong("the preservation of %s ends early", is.Name)
		}
	}
}

// assessDrained judges that a Node is said to be drained for its preservation only
// when it is.
func (w *world) assessDrained(was, is *corev1.Node) {
	m := w.machine(is.Name)
	if saysDrained(was) || !saysDrained(is) || m == nil || w.mayForce(m, is) || w.scenario.oldLists {
		return
	}
	for _, pod := range all[*corev1.Pod](w.target, "pods") {
		if pod.Spec.NodeName == is.Name && pod.Status.Phase == corev1.PodRunning {
			w.wrong("node %s is said to be drained, with pod %s on it", is.Name, pod.Name)
		}
	}
}

func saysDrained(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.NodePreserved && strings.HasPrefix(c.Message, "Preserved node drained")
	})
}

// checkUnpreserved judges that nothing is left of a preservation.
func (w *world) checkUnpreserved(m *v1alpha1.Machine, node *corev1.Node) {
	if end := m.Status.CurrentStatus.PreserveExpiryTime; end != nil {
		w.wrong("%s rests preserved until %s", m.Name, end)
	}
	for _, o := range []metav1.Object{m, node} {
		if o.GetAnnotations()[v1alpha1.PreserveMachineAnnotationKey] == v1alpha1.PreserveMachineAnnotationValueNow {
			w.wrong("%s rests with the wish to be preserved now", m.Name)
		}
	}
	for _, key := range []string{v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey, v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey} {
		if value, has := node.Annotations[key]; has {
			w.wrong("node %s rests with %s=%s", node.Name, key, value)
		}
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNodePreserved }) {
		w.wrong("node %s rests with the taint of those that are preserved", node.Name)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodePreserved && c.Status != corev1.ConditionFalse {
			w.wrong("node %s rests with condition %s", node.Name, c.Type)
		}
	}
}
