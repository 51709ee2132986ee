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
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

// uncordonable is a drain of a Node with three pods that the test stops.
type uncordonable struct {
	*world

	policy  drain.Policy
	state   drain.State
	results []drain.Result
}

func newUncordonable(t *testing.T, node *corev1.Node, cordon nodeops.Cordon) *uncordonable {
	t.Helper()
	return &uncordonable{world: stillWorld(t, node, newPod("web-1"), newPod("web-2"), newPod("web-3")), policy: drain.Policy{Cordon: cordon}}
}

// node returns the Node without its version.
func (a *uncordonable) node(t *testing.T) *corev1.Node {
	t.Helper()
	node := a.observe(t).Node
	node.ResourceVersion = ""
	return node
}

// step makes one decision, applies it, and lets time pass.
func (a *uncordonable) step(t *testing.T) {
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

// uncordon undoes the cordon of the drain twice.
func (a *uncordonable) uncordon(t *testing.T) {
	t.Helper()
	for range 2 {
		require.NoError(t, a.executor().Uncordon(t.Context(), "node-1", a.policy.Cordon.Owner))
	}
}

func TestUncordon_AfterEachStep_RestoresTheNode(t *testing.T) {
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
				a := newUncordonable(t, node, cordon)
				before := a.node(t)
				for range steps {
					a.step(t)
				}
				require.Equal(t, steps > 0, len(nodeops.Cordons(a.node(t))) > len(nodeops.Cordons(before)))
				a.uncordon(t)
				require.Empty(t, cmp.Diff(before, a.node(t)), "%s, %v, %d steps", from, cordon, steps)
			}
		}
	}
}

func TestUncordon_OtherClientEditsTheNode_KeepsItsMarks(t *testing.T) {
	for steps := range 6 {
		t.Run(fmt.Sprintf("after %d steps", steps), func(t *testing.T) {
			a := newUncordonable(t, newNode("node-1"), nodeops.Cordon{Owner: "me", Taint: "example.com/drain", ExcludeFromLoadBalancers: true})
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
			node, _, err := noderunner.UpdateNode(t.Context(), a.client.CoreV1().Nodes(), "node-1", edit)
			require.NoError(t, err)
			condition := corev1.NodeCondition{Type: "Theirs", Status: corev1.ConditionTrue}
			node.Status.Conditions = []corev1.NodeCondition{condition}
			_, err = a.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NoError(t, second(noderunner.CordonNode(t.Context(), a.client.CoreV1().Nodes(), "node-1", "", nodeops.Cordon{}, now))) // kubectl cordon
			a.step(t)
			a.uncordon(t)

			_, err = edit(want)
			require.NoError(t, err)
			want.Spec.Unschedulable, want.Status.Conditions = true, []corev1.NodeCondition{condition}
			require.Empty(t, cmp.Diff(want, a.node(t)))
		})
	}
}

func TestUncordon_ZeroPolicy_UndoesTheCordon(t *testing.T) {
	a := newUncordonable(t, newNode("node-1"), nodeops.Cordon{})
	before := a.node(t)
	a.step(t)
	require.True(t, a.node(t).Spec.Unschedulable)
	a.uncordon(t)
	require.Empty(t, cmp.Diff(before, a.node(t)))
}

func TestUncordon_NoNodeOrCordon_ChangesNothing(t *testing.T) {
	a := newUncordonable(t, newNode("node-1"), nodeops.Cordon{})
	version := a.ResourceVersion()
	require.NoError(t, a.executor().Uncordon(t.Context(), "node-9", "me"))
	require.NoError(t, a.executor().Uncordon(t.Context(), "node-1", "me"), "it is not cordoned")
	require.Empty(t, a.HistorySince(version))
	require.Empty(t, a.heard)
}

func TestUncordon_RequestFails_ReturnsAndReportsTheError(t *testing.T) {
	a := newUncordonable(t, newNode("node-1"), owned.Cordon)
	a.step(t)
	remove := a.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
	err := a.executor().Uncordon(t.Context(), "node-1", owned.Cordon.Owner)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Len(t, a.heard, 1)
	require.Equal(t, drain.ProgressUncordoned, a.heard[0].Type)
	require.Error(t, a.heard[0].Err)
	remove()
	a.uncordon(t)
	require.Len(t, a.heard, 2, "an uncordon without a change is not reported")
	require.NoError(t, a.heard[1].Err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.executor().Uncordon(ctx, "node-1", owned.Cordon.Owner), context.Canceled)

	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client, _ := apiServer(t, metav1.Status{})
		err := runner.Executor{Client: runner.NewClient(client), CallTimeout: 5 * time.Second}.Uncordon(t.Context(), "hangs", owned.Cordon.Owner)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}
