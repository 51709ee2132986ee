// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/require"
)

var nodeScenarios = []scenario{
	{"nodes-and-cordons", nodesAndCordons},
	{"nodes-and-deletion", nodesAndDeletion},
}

func nodesAndCordons(w *world) {
	node := w.node("n", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		n.Spec.ProviderID = "p"
	})
	w.got("created", node, nil, "spec/unschedulable", "spec/providerID", "metadata/generation")
	w.say("taints: %s", taintsOf(node))
	node, err := w.nodeAPI().Patch(w.ctx(), node.Name, types.StrategicMergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	w.got("cordon", node, err, "spec/unschedulable")
	node, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.StrategicMergePatchType, []byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{})
	w.got("uncordon", node, err, "spec/unschedulable")
	node, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	w.got("uncordon again", node, err, "spec/unschedulable")
	// A patch of the list of taints has the resource version, so that it does not lose taints that other clients set meanwhile.
	stale := node.DeepCopy()
	_, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.StrategicMergePatchType, []byte(`{"spec":{"taints":[{"key":"b","effect":"NoExecute"}]}}`), metav1.PatchOptions{})
	require.NoError(w.t, err)
	stale.Spec.Taints = nil
	_, err = w.nodeAPI().Update(w.ctx(), stale, metav1.UpdateOptions{})
	w.did("update with stale taints", err)
	_, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"`+stale.ResourceVersion+`"},"spec":{"taints":null}}`), metav1.PatchOptions{})
	w.did("patch with stale taints", err)
	got, err := w.nodeAPI().Get(w.ctx(), node.Name, metav1.GetOptions{})
	w.got("get", got, err, "spec/unschedulable")
	w.say("taints: %s", taintsOf(got))
}

func nodesAndDeletion(w *world) {
	node := w.node("n", func(n *corev1.Node) { n.Finalizers = hold("a") })
	w.did("delete", w.nodeAPI().Delete(w.ctx(), node.Name, metav1.DeleteOptions{}))
	got, err := w.nodeAPI().Get(w.ctx(), node.Name, metav1.GetOptions{})
	w.got("get", got, err, deletion...)
	got, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("patch without finalizers", got, err, "metadata/finalizers")
	_, err = w.nodeAPI().Get(w.ctx(), node.Name, metav1.GetOptions{})
	w.did("get", err)
	again := w.node("n")
	w.say("another incarnation: %v", again.UID != node.UID)
	node.Finalizers = nil
	_, err = w.nodeAPI().Update(w.ctx(), node, metav1.UpdateOptions{})
	w.did("update of the one before", err)
	w.did("delete of the one before", w.nodeAPI().Delete(w.ctx(), node.Name, *metav1.NewPreconditionDeleteOptions(string(node.UID))))
	w.did("delete", w.nodeAPI().Delete(w.ctx(), node.Name, metav1.DeleteOptions{}))
}
