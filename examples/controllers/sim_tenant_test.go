// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A tenant may write Machines, and has no right on Nodes. The judge knows the Nodes that are not of
// any machine: nothing is done to them (I-21).

// addStranger adds a Node that is not that of any machine, with pods.
func (w *world) addStranger(name, id string) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Spec:       corev1.NodeSpec{ProviderID: id},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())},
		}},
	}
	must(w.target.cluster.Add(node, w.pod(name, "stranger")))
	if w.judge.strangers == nil {
		w.judge.strangers = map[string]bool{}
	}
	w.judge.strangers[name] = true
	w.collect(others)
}

// assessStranger checks that a write of the controllers does nothing to a Node that is not that of
// any machine, nor to its pods. The mark of a Node without a machine is allowed.
func (w *world) assessStranger(write draintest.Write) {
	switch was := write.Before.(type) {
	case *corev1.Node:
		if !w.judge.strangers[was.Name] {
			return
		}
		if is, ok := write.After.(*corev1.Node); ok {
			after := is.DeepCopy()
			after.ResourceVersion = was.ResourceVersion
			delete(after.Annotations, v1alpha1.NotManagedByMCM)
			if equality.Semantic.DeepEqual(was, after) {
				return
			}
		}
		w.judge.touched = append(w.judge.touched, write.Verb+" node "+was.Name)
	case *corev1.Pod:
		if w.judge.strangers[was.Spec.NodeName] {
			w.judge.touched = append(w.judge.touched, write.Verb+" pod "+was.Name)
		}
	}
}

// claims are what a tenant writes into a machine to claim a Node.
func claims(name string, rng *rand.Rand) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{}}, Spec: machineSpec()}
	i := rng.IntN(3)
	if rng.IntN(3) > 0 {
		m.Labels[v1alpha1.NodeLabelKey] = fmt.Sprint("cp-", i)
	}
	if i > 0 && rng.IntN(2) == 0 {
		m.Spec.ProviderID = fmt.Sprint("kind:///cp-", i)
	}
	if rng.IntN(4) == 0 {
		m.Labels[v1alpha1.LabelKeyForceDeletion] = "true"
	}
	if rng.IntN(4) == 0 {
		m.Spec.NodeTemplateSpec.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: "forged"}
	}
	return m
}

// attack is one write of the tenant, or a Node that comes back with the VM of another owner.
func (w *world) attack(i int) {
	machines := w.machines.MachineV1alpha1().Machines(ns)
	patch := func(o any) {
		data, err := json.Marshal(o)
		must(err)
		_, _ = machines.Patch(ofOthers, "m-0", types.MergePatchType, data, metav1.PatchOptions{}) // the machine may be deleted
	}
	name := fmt.Sprint("cp-", w.rng.IntN(3))
	w.logf("a tenant attacks")
	switch w.rng.IntN(5) {
	case 0:
		patch(map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.NodeLabelKey: name}}})
	case 1:
		patch(map[string]any{"spec": map[string]any{"providerID": "kind:///" + name}})
	case 2: // the Node name of a machine goes to the VM of another owner
		if node := w.node("m-1"); node != nil && !w.judge.strangers["m-1"] {
			nodes := w.nodes.CoreV1().Nodes()
			_, err := nodes.Patch(ofOthers, node.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			must(err)
			must(nodes.Delete(ofOthers, node.Name, metav1.DeleteOptions{}))
			w.addStranger("m-1", fmt.Sprint("other:///", i))
		}
	default:
		m := claims(fmt.Sprint("t-", i), w.rng)
		must(w.control.cluster.Add(m))
		w.later(time.Duration(w.rng.Int64N(int64(40*time.Minute))), func() { w.remove(m.Name) })
	}
	w.collect(others)
}

// runOn runs to the end. The other laws are those of machines that no user changes, and are ignored.
func (w *world) runOn() {
	for range 200 {
		w.violations = nil
		if w.run(); len(w.violations) == 0 {
			return
		}
	}
}

// TestTenant_AnyClaims_NodesOfOthersStay lets a tenant claim Nodes by labels, provider IDs and
// templates at random times, with crashes and other faults. All machines can be deleted.
func TestTenant_AnyClaims_NodesOfOthersStay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 31))
		s := scenario{name: "tenant", machines: 2, joins: true, pods: rng.IntN(3), cloud: anyCloud(rng), oldLists: rng.IntN(4) == 0}
		w := newWorld(s, rng, randomFaults(rng), false)
		w.addStranger("cp-0", "")
		w.addStranger("cp-1", "kind:///cp-1")
		w.addStranger("cp-2", "kind:///cp-2")
		for i := range 1 + rng.IntN(5) {
			w.later(time.Duration(rng.Int64N(int64(30*time.Minute))), func() { w.attack(i) })
		}
		w.later(31*time.Minute, func() {})
		w.runOn()
		for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
			w.remove(m.Name)
		}
		w.runOn()
		require.Empty(t, w.judge.touched, "seed %d", seed)
		require.Empty(t, w.control.now["machines"], "seed %d: %s", seed, strings.Join(tail(w.trace, 60), "\n"))
		for name := range w.judge.strangers {
			require.NotNil(t, w.node(name), "seed %d: %s", seed, name)
		}
		if w.process != nil {
			w.process.cancel()
		}
	}
}
