// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

// abortable is a drain of a Node with three pods that the test aborts.
type abortable struct {
	*world

	policy  drain.Policy
	state   drain.State
	results []drain.Result
}

func newAbortable(t *testing.T, node *corev1.Node, cordon nodeops.Cordon) *abortable {
	t.Helper()
	return &abortable{world: stillWorld(t, node, newPod("web-1"), newPod("web-2"), newPod("web-3")), policy: drain.Policy{Cordon: cordon}}
}

// node returns the Node without its version.
func (a *abortable) node(t *testing.T) *corev1.Node {
	t.Helper()
	node := a.observe(t).Node
	node.ResourceVersion = ""
	return node
}

// step makes one decision, applies it, and lets time pass.
func (a *abortable) step(t *testing.T) {
	t.Helper()
	in := a.observe(t)
	in.Results = a.results
	var d drain.Decision
	a.state, d = drain.Step(a.state, in, a.policy, a.Clock().Now())
	var err error
	a.results, err = a.executor().Apply(t.Context(), d)
	require.NoError(t, err)
	a.Clock().(*clocktesting.FakeClock).Step(10 * time.Second)
	a.Tick()
}

// abort aborts the drain twice.
func (a *abortable) abort(t *testing.T) {
	t.Helper()
	for range 2 {
		require.NoError(t, a.executor().Abort(t.Context(), "node-1", "uid-node-1", a.policy))
	}
}

func TestAbort_AfterEachStep_RestoresTheNode(t *testing.T) {
	marked := newNode("node-1")
	marked.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	marked.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: "by-hand"}
	claimed, _, err := nodeops.Cordon{Owner: "other", ExcludeFromLoadBalancers: true}.Set(newNode("node-1"), now)
	require.NoError(t, err)
	nodes := map[string]*corev1.Node{"open": newNode("node-1"), "cordoned by hand": newNode("node-1", cordoned), "with marks": marked, "cordoned by another": claimed}
	for from, node := range nodes {
		for _, cordon := range []nodeops.Cordon{
			{Owner: "me", Reason: "test"}, {Owner: "me", Taint: "example.com/drain"},
			{Owner: "me", Taint: "example.com/drain", ExcludeFromLoadBalancers: true, OutOfService: true},
		} {
			for steps := range 5 {
				a := newAbortable(t, node, cordon)
				before := a.node(t)
				for range steps {
					a.step(t)
				}
				require.Equal(t, steps > 0, len(nodeops.Cordons(a.node(t))) > len(nodeops.Cordons(before)))
				a.abort(t)
				require.Empty(t, cmp.Diff(before, a.node(t)), "%s, %v, %d steps", from, cordon, steps)
			}
		}
	}
}

func TestAbort_OtherClientEditsTheNode_KeepsItsMarks(t *testing.T) {
	for steps := range 6 {
		t.Run(fmt.Sprintf("after %d steps", steps), func(t *testing.T) {
			a := newAbortable(t, newNode("node-1"), nodeops.Cordon{Owner: "me", Taint: "example.com/drain", ExcludeFromLoadBalancers: true})
			want := a.node(t)
			for range steps {
				a.step(t)
			}
			edit := func(node *corev1.Node) (bool, error) {
				node.Spec.Taints, _ = nodeops.SetTaint(node.Spec.Taints, corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute})
				metav1.SetMetaDataLabel(&node.ObjectMeta, "theirs", "1")
				metav1.SetMetaDataAnnotation(&node.ObjectMeta, "theirs", "2")
				return true, nil
			}
			node, _, err := noderunner.UpdateNode(t.Context(), a.client, "node-1", edit)
			require.NoError(t, err)
			condition := corev1.NodeCondition{Type: "Theirs", Status: corev1.ConditionTrue}
			node.Status.Conditions = []corev1.NodeCondition{condition}
			_, err = a.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NoError(t, second(noderunner.CordonNode(t.Context(), a.client, "node-1", "", nodeops.Cordon{}, now))) // kubectl cordon
			a.step(t)
			a.abort(t)

			_, err = edit(want)
			require.NoError(t, err)
			want.Spec.Unschedulable, want.Status.Conditions = true, []corev1.NodeCondition{condition}
			require.Empty(t, cmp.Diff(want, a.node(t)))
		})
	}
}

func TestAbort_NoOwnerOrClient_IsUnusable(t *testing.T) {
	a := newAbortable(t, newNode("node-1"), nodeops.Cordon{})
	version := a.ResourceVersion()
	require.ErrorContains(t, a.executor().Abort(t.Context(), "node-1", "", a.policy), "drain: unusable: no owner of the cordon")
	require.ErrorContains(t, runner.Executor{}.Abort(t.Context(), "node-1", "", owned), "drain: unusable: no client")
	require.NoError(t, runner.Executor{}.Abort(t.Context(), "node-1", "", drain.Policy{KeepSchedulable: true}), "nothing was done to the Node")
	require.Error(t, a.executor().Abort(t.Context(), "", "", owned))
	require.Empty(t, a.HistorySince(version))
}

func TestAbort_NodeIsGoneOrReplaced_ChangesNothing(t *testing.T) {
	for _, uid := range []types.UID{"uid-node-1", "uid-of-old"} {
		a := newAbortable(t, newNode("node-1"), owned.Cordon)
		if uid == "uid-node-1" {
			require.NoError(t, a.client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
		} else {
			a.step(t) // the new Node is cordoned by the same owner
		}
		version := a.ResourceVersion()
		require.NoError(t, a.executor().Abort(t.Context(), "node-1", uid, a.policy))
		require.Empty(t, a.HistorySince(version))
		require.Empty(t, a.heard)
	}
}

func TestAbort_RequestFails_ReturnsAndReportsTheError(t *testing.T) {
	a := newAbortable(t, newNode("node-1"), owned.Cordon)
	a.step(t)
	remove := a.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "update", Resource: "nodes"})
	err := a.executor().Abort(t.Context(), "node-1", "", a.policy)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Len(t, a.heard, 1)
	require.Equal(t, drain.ProgressUncordoned, a.heard[0].Type)
	require.Error(t, a.heard[0].Err)
	remove()
	a.abort(t)
	require.Len(t, a.heard, 2, "an abort without a change is not reported")
	require.NoError(t, a.heard[1].Err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.executor().Abort(ctx, "node-1", "", a.policy), context.Canceled)

	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client, _ := apiServer(t, metav1.Status{})
		err := runner.Executor{Client: client, CallTimeout: 5 * time.Second}.Abort(t.Context(), "hangs", "", owned)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}
