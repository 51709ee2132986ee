// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	clients "github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// staleNode returns a pass with an observation of a Node that another client has changed since:
// it has replaced the taints, and added a label and an image.
func staleNode(t *testing.T) *pass {
	t.Helper()
	cluster := draintest.New(draintest.Options{})
	require.NoError(t, cluster.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"first": "1"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectNoSchedule}}},
	}))
	client := cluster.Client()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	newer := node.DeepCopy()
	newer.Labels["theirs"] = "1"
	newer.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}
	newer, err = client.CoreV1().Nodes().Update(t.Context(), newer, metav1.UpdateOptions{})
	require.NoError(t, err)
	newer.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}}
	_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), newer, metav1.UpdateOptions{})
	require.NoError(t, err)
	p := &pass{Executor: &Executor{Requests: clients.New(nil, client), Target: client}}
	p.in.Node.Node = node
	return p
}

// write applies a change of the observed Node, and returns the Node as the pass knows it then.
func write(t *testing.T, p *pass, do machinist.Update, change func(*corev1.Node)) *corev1.Node {
	t.Helper()
	do.Before = p.in.Node.Node
	after := p.in.Node.Node.DeepCopy()
	change(after)
	do.Object = after
	require.NoError(t, p.apply(t.Context(), do))
	return p.in.Node.Node
}

func TestPatchNode_NodeChangedByOthers_TheirChangesStay(t *testing.T) {
	p := staleNode(t)
	node := write(t, p, machinist.Update{}, func(n *corev1.Node) { n.Labels["ours"] = "1" })
	require.Equal(t, map[string]string{"first": "1", "theirs": "1", "ours": "1"}, node.Labels)
	require.Equal(t, "theirs", node.Spec.Taints[0].Key)

	node.Status.Images = nil // as in the cache
	node = write(t, p, machinist.Update{Subresource: "status"}, func(n *corev1.Node) {
		n.Status.Capacity = corev1.ResourceList{"example.com/gpu": *n.Status.Capacity.Cpu()}
	})
	require.Contains(t, node.Status.Capacity, corev1.ResourceName("example.com/gpu"))
	require.Len(t, node.Status.Images, 1)
}

func TestPatchNode_TaintsOfAChangedNode_AreNotReplaced(t *testing.T) {
	p := staleNode(t)
	for _, want := range []int{1, 2} { // the second decision uses the newer Node
		node := write(t, p, machinist.Update{Unchanged: true}, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "ours", Effect: corev1.TaintEffectNoSchedule})
		})
		require.Len(t, node.Spec.Taints, want)
		require.Equal(t, "theirs", node.Spec.Taints[0].Key)
	}
}

func TestPatchNode_ConditionOfAChangedNode_WrittenUnlessItHasToBeUnchanged(t *testing.T) {
	for unchanged, want := range map[bool]int{false: 1, true: 0} {
		node := write(t, staleNode(t), machinist.Update{Subresource: "status", Unchanged: unchanged}, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionTrue}}
		})
		require.Len(t, node.Status.Conditions, want)
		require.Contains(t, node.Labels, "theirs")
	}
}

func TestPatchNode_OtherNodeOfTheName_IsNotChanged(t *testing.T) {
	p := staleNode(t)
	nodes := p.Target.CoreV1().Nodes()
	require.NoError(t, nodes.Delete(t.Context(), "n", metav1.DeleteOptions{}))
	_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	after := p.in.Node.Node.DeepCopy()
	after.Labels["ours"] = "1"
	require.True(t, apierrors.IsInvalid(p.apply(t.Context(), machinist.Update{Before: p.in.Node.Node, Object: after})), "its UID is another")
	live, err := nodes.Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotContains(t, live.Labels, "ours")
}
