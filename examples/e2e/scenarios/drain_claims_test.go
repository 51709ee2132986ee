// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// nodeA returns the Node a as it is.
func (w *drainWorld) nodeA(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), w.a, metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

// schedulable is what a person does to a Node with kubectl cordon and uncordon.
func (w *drainWorld) schedulable(t *testing.T, yes bool) {
	t.Helper()
	patch := `{"spec":{"unschedulable":true}}`
	if yes {
		patch = `{"spec":{"unschedulable":null}}`
	}
	_, err := w.client.CoreV1().Nodes().Patch(t.Context(), w.a, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// by is a policy with an owner of the cordon.
func by(owner string) drain.Policy {
	p := lenient
	p.Cordon = nodeops.Cordon{Owner: owner, ExcludeFromLoadBalancers: true}
	return p
}

// TestCordon_LastOwnerLeaves_IsRemoved asserts that a Node is uncordoned with the last owner of the cordon, unless a user cordoned it before.
func TestCordon_LastOwnerLeaves_IsRemoved(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	pod := w.pod(t, "web", w.a)
	w.budget(t, "web", "web", 1, 1, 1)
	executor := runner.Executor{Client: runner.NewClient(w.client)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one, two := w.drains(ctx, w.client, by("one")), w.drains(ctx, w.client, by("two"))
	for _, g := range []*going{one, two} {
		g.waits(t, w, "pod/"+w.ns+"/web", drain.ReasonBudgetNever)
	}
	n := w.nodeA(t)
	require.Len(t, nodeops.Cordons(n), 2, "no write is lost")
	require.True(t, n.Spec.Unschedulable)
	require.Contains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
	cancel()
	one.end(t)
	two.end(t)
	require.NoError(t, executor.Uncordon(t.Context(), w.a, "one"))
	require.True(t, w.nodeA(t).Spec.Unschedulable, "the other still wants it so")
	require.NoError(t, executor.Uncordon(t.Context(), w.a, "two"))
	n = w.nodeA(t)
	require.False(t, n.Spec.Unschedulable)
	require.NotContains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
	require.Empty(t, nodeops.Cordons(n))
	require.True(t, w.there(t, pod))

	// A user cordoned it before.
	w.schedulable(t, false)
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	one = w.drains(ctx, w.client, by("one"))
	one.waits(t, w, "pod/"+w.ns+"/web", drain.ReasonBudgetNever)
	cancel()
	one.end(t)
	require.NoError(t, executor.Uncordon(t.Context(), w.a, "one"))
	n = w.nodeA(t)
	require.True(t, n.Spec.Unschedulable, "that is not ours")
	require.NotContains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
}

// TestDrain_UserUncordons_Stops asserts that a drain stops and says so when a user uncordons the Node.
func TestDrain_UserUncordons_Stops(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	pod := w.pod(t, "web", w.a)
	w.budget(t, "web", "web", 1, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := w.drains(ctx, w.client, by("one"))
	g.waits(t, w, "pod/"+w.ns+"/web", drain.ReasonBudgetNever)
	w.schedulable(t, true)
	g.waits(t, w, "node/"+w.a, drain.ReasonUncordoned)
	require.NoError(t, w.client.PolicyV1().PodDisruptionBudgets(w.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	late := w.pod(t, "late", w.a)
	cancel()
	require.ErrorIs(t, g.end(t).err, context.Canceled)
	require.True(t, w.there(t, pod))
	require.True(t, w.there(t, late))
	n := w.nodeA(t)
	require.False(t, n.Spec.Unschedulable, "it was not closed again")
	require.NoError(t, runner.Executor{Client: runner.NewClient(w.client)}.Uncordon(t.Context(), w.a, "one"))
	require.False(t, w.nodeA(t).Spec.Unschedulable)
	require.Empty(t, nodeops.Cordons(w.nodeA(t)))
}
