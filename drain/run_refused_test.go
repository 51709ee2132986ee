// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

func TestRun_NodeDoesNotExist_ReturnsErrNodeNotFound(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		plan, err := w.run(t.Context(), drain.Policy{})
		require.ErrorIs(t, err, runner.ErrNodeNotFound)
		require.ErrorAs(t, err, new(*runner.UnfinishedError))
		require.ErrorContains(t, err, "node-1")
		require.NotEqual(t, drain.Drained, plan.Outcome)
		require.Equal(t, "node-1", plan.Node)
		requireNoWrites(t, w.client)
	}, newPod("a"))
}

// requireNoWrites asserts that a client has only read.
func requireNoWrites(t *testing.T, client *fake.Clientset) {
	t.Helper()
	for _, action := range client.Actions() {
		require.Contains(t, []string{"get", "list", "watch"}, action.GetVerb(), "%s %s", action.GetVerb(), action.GetResource().Resource)
	}
}

func TestRun_InvalidPolicy_RefusedWithoutACall(t *testing.T) {
	fence := new(*nodeops.FenceError)
	for name, tt := range map[string]struct {
		policy drain.Policy
		says   string
	}{
		"ladder":             {drain.Policy{Ladder: drain.Ladder{{After: -time.Second, Action: drain.GiveUp}}}, "rung 0"},
		"unreachable ladder": {drain.Policy{UnreachableLadder: drain.Ladder{{Action: "Explode"}}}, "rung 0"},
		"fence":              {drain.Policy{Fence: nodeops.Fence{Owner: "a/b"}}, "fence"},
	} {
		t.Run(name, func(t *testing.T) {
			inRunWorld(t, func(t *testing.T, w *runWorld) {
				plan, err := w.run(t.Context(), tt.policy)
				require.ErrorContains(t, err, tt.says)
				require.Equal(t, name == "fence", errors.As(err, fence))
				require.ErrorAs(t, err, new(*runner.UnfinishedError))
				require.ErrorContains(t, err, "node-1")
				require.False(t, plan.Over())
				require.Empty(t, w.client.Actions())
			}, runPods(1)...)
		})
	}
}

func TestRun_PolicyProtectsAPod_RefusedBeforeTheFence(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		var heard runHeard
		plan, err := runner.Executor{Client: w.client, Observer: &heard}.Run(t.Context(), "node-1", drain.Policy{})
		require.ErrorIs(t, err, runner.ErrNotFeasible)
		require.ErrorContains(t, err, "shop/lonely")
		unfinished, ok := errors.AsType[*runner.UnfinishedError](err)
		require.True(t, ok)
		require.Equal(t, plan, unfinished.Decision)
		require.Len(t, plan.Obstacles(), 1)
		require.Equal(t, "lonely", plan.Obstacles()[0].Name)
		require.Equal(t, drain.ReasonUnmanaged, plan.Obstacles()[0].Reason)
		require.Empty(t, heard, "nothing was begun")
		requireNoWrites(t, w.client)
		node, err := w.client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
		require.NoError(t, err)
		require.False(t, node.Spec.Unschedulable)
	}, append(runPods(2), newPod("lonely", unmanaged))...)
}

// A person has opened the Node of an earlier drain of the same owner.
func TestRun_FenceTakenAwayBefore_Refused(t *testing.T) {
	policy := drain.Policy{Fence: nodeops.Fence{Owner: "updater"}}
	node, _, err := policy.Fence.Set(openNode(), now)
	require.NoError(t, err)
	node.Spec.Unschedulable = false
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		plan, err := w.run(t.Context(), policy)
		require.ErrorIs(t, err, runner.ErrNotFeasible)
		require.ErrorContains(t, err, "fence the Node again")
		require.Equal(t, drain.ReasonUncordoned, plan.Gates[0].Reason)
		requireNoWrites(t, w.client)
		policy.Reassert = true
		plan, err = w.run(t.Context(), policy)
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
	}, node, newPod("a"))
}

// The first list may come from a cache that does not show yet what the caller has just done.
func TestRun_FirstListIsOld_NothingIsRefusedForIt(t *testing.T) {
	policy := drain.Policy{Fence: nodeops.Fence{Owner: "updater"}}
	opened, _, err := policy.Fence.Set(openNode(), now)
	require.NoError(t, err)
	opened.Spec.Unschedulable = false
	for name, before := range map[string][]kruntime.Object{"of a Node that was opened": {opened}, "without the Node": {newPod("a")}} {
		t.Run(name, func(t *testing.T) {
			inRunWorld(t, func(t *testing.T, w *runWorld) {
				old, err := w.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				if len(old.Items) == 0 {
					require.NoError(t, w.Add(openNode()))
				} else {
					_, err = nodeops.FenceNode(t.Context(), w.Client(), "node-1", "", policy.Fence, now)
					require.NoError(t, err)
				}
				first := true
				w.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, kruntime.Object, error) {
					defer func() { first = false }()
					return first, old, nil
				})
				plan, err := w.run(t.Context(), policy)
				require.NoError(t, err)
				require.Equal(t, drain.Drained, plan.Outcome)
			}, before...)
		})
	}
}

// A rung that does away with the obstacle makes the drain feasible.
func TestRun_LadderGoesOnWithoutThePod_Begins(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		plan, err := w.run(t.Context(), drain.Policy{Ladder: drain.Ladder{{After: time.Minute, Action: drain.Proceed}}})
		require.ErrorAs(t, err, new(*runner.UnfinishedError))
		require.Equal(t, drain.Proceeded, plan.Outcome)
	}, append(runPods(1), newPod("lonely", unmanaged))...)
}

// Budgets are not the policy's: their owner may change them when the Node is fenced. So a
// Run waits, tells the Observer, and names them when its context ends.
func TestRun_BudgetNeverAllows_WaitsAndTells(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		var heard runHeard
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		plan, err := runner.Executor{Client: w.client, Observer: &heard}.Run(ctx, "node-1", drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, runner.ErrNotFeasible)
		require.ErrorContains(t, err, "shop/never")
		require.Len(t, plan.Obstacles(), 1)
		require.Equal(t, map[drain.ProgressType]int{drain.ProgressStarted: 1, drain.ProgressFenced: 1, drain.ProgressWaiting: 1}, heard.types())
		waiting := heard[len(heard)-1]
		require.Equal(t, "pod/shop/web-00", waiting.Subject)
		require.Equal(t, drain.ReasonBudgetNever, waiting.Reason)
		require.WithinDuration(t, w.start, waiting.Time, time.Second)
	}, append(runPods(1), execBudget("never", "web", 1))...)
}

// A pod that comes after the beginning does not end the drain: it is told and waited for.
func TestRun_ProtectedPodComesLater_WaitsAndTells(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		var heard runHeard
		w.later(t, 10*time.Second, func(*fake.Clientset) error { return w.Add(newPod("lonely", unmanaged)) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		plan, err := runner.Executor{Client: w.client, Observer: &heard}.Run(ctx, "node-1", drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "lonely", plan.Obstacles()[0].Name)
		told := 0
		for _, e := range heard {
			if e.Type == drain.ProgressWaiting && e.Reason == drain.ReasonUnmanaged {
				told++
			}
		}
		require.Equal(t, 1, told)
	}, append(runPods(1), execBudget("never", "web", 1))...)
}

// Until the Node is fenced the drain waits for the fence, and says of no pod that it waits.
func TestRun_FenceFails_TellsPodsOnlyAfterIt(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		var heard runHeard
		w.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 3})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := runner.Executor{Client: w.client, Observer: &heard}.Run(ctx, "node-1", drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var told []string
		for _, e := range heard {
			told = append(told, string(e.Type))
			if e.Type == drain.ProgressFenced {
				require.Equal(t, len(told) < 5, e.Err != nil) // the fourth attempt succeeds
			}
		}
		require.Equal(t, []string{"Fenced", "Started", "Fenced", "Fenced", "Fenced", "Waiting"}, told)
	}, append(runPods(1), execBudget("never", "web", 1))...)
}
