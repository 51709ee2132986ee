// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// roundProceed is a policy whose ladder has ended.
func roundProceed() drain.Policy {
	return drain.Policy{EscalateFrom: now.Add(-time.Hour), Ladder: drain.Ladder{{After: time.Minute, Action: drain.Proceed}}}
}

func TestDD15ARoundLooksAgainBeforeItIsOver(t *testing.T) {
	behind := observed() // a cache that does not show the pod
	cluster := execCluster(t, newNode(), newPod("late"))
	state, plan, err := execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, behind, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.Draining, plan.Outcome)
	require.Len(t, plan.Holds(), 1)
	require.Len(t, state.Pods, 1)
	require.NotNil(t, execObserve(t, cluster).Pods.Items[0].DeletionTimestamp, "and was evicted")

	other := execCluster(t, newNode(), newPod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }))
	client := other.Clientset()
	_, plan, err = execSerial(other, client).Pass(t.Context(), drain.State{}, behind, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, []string{"list pods"}, execAsked(client), "B1 settle: one list, and no waiting")
}

// What belongs to the pods that only the list shows was not observed with them: their
// DaemonSets are not known to be gone.
func TestTheListThatConfirmsEvictsNoPodOfADaemonSet(t *testing.T) {
	behind := observed()
	behind.DaemonSets = drain.All[*appsv1.DaemonSet]()
	cluster := execCluster(t, newNode(), newPod("agent", ownedBy("DaemonSet")),
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}})
	client := cluster.Clientset()
	_, plan, err := execSerial(cluster, client).Pass(t.Context(), drain.State{}, behind, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, []string{"list pods"}, execAsked(client))
}

// The list that confirms is asked for after the fence was seen, so that it shows every pod
// that the scheduler bound before.
func TestB1SettleCostsNothingButComesAfterTheFence(t *testing.T) {
	cluster := execCluster(t, openNode())
	client := cluster.Clientset()
	executor := execSerial(cluster, client)
	in := observed()
	in.Node = openNode()
	state, plan, err := executor.Pass(t.Context(), drain.State{}, in, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.Draining, plan.Outcome, "nobody has seen the fence yet")
	require.Equal(t, []string{"patch nodes"}, execAsked(client))

	_, plan, err = executor.Pass(t.Context(), state, execObserve(t, cluster), drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, []string{"patch nodes", "list pods"}, execAsked(client))
}

func TestARoundSaysWhatRefusedAPod(t *testing.T) {
	cluster := execCluster(t, newNode(), newPod("a"))
	cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "create", Resource: "pods"})
	in := execObserve(t, cluster)
	state, plan, err := execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, in, drain.Policy{}, "node-1")
	require.NoError(t, err, "what the API server says of a pod is in the plan")
	require.False(t, plan.Over())
	require.Equal(t, drain.ReasonForbidden, plan.Holds()[0].Reason)
	require.WithinDuration(t, now.Add(5*time.Second), plan.NextCheck, time.Second)
	require.NotEmpty(t, state.Pods)
	require.Empty(t, in.Results, "what was given is not changed")
}

// A drain of which something failed is never over: not when its pods cannot be listed, not
// when its deadline has passed, not when its context has ended.
func TestDD1ARoundThatCannotLookIsNotOver(t *testing.T) {
	for name, policy := range map[string]drain.Policy{"in peace": {}, "after its end": roundProceed()} {
		for _, kind := range []draintest.FaultKind{draintest.Forbidden, draintest.InternalError, draintest.Timeout} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				cluster := execCluster(t, newNode())
				in := execObserve(t, cluster)
				cluster.Inject(draintest.Fault{Kind: kind, Verb: "list", Resource: "pods"}, draintest.Fault{Kind: kind, Verb: "get"})
				state, plan, err := execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, in, policy, "node-1")
				require.Error(t, err)
				require.Equal(t, kind == draintest.Forbidden, apierrors.IsForbidden(err))
				require.Equal(t, drain.Draining, plan.Outcome)
				require.Equal(t, drain.ReasonNotObserved, plan.Reason)
				require.Equal(t, "node-1", plan.Node)
				require.Equal(t, now.Add(5*time.Second), plan.NextCheck)
				require.Equal(t, drain.State{}, state)
			})
		}
	}
	t.Run("its context has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		cluster := execCluster(t, newNode())
		_, plan, err := execSerial(cluster, cluster.Client()).Pass(ctx, drain.State{}, observed(), drain.Policy{}, "node-1")
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, plan.Over())
	})
	t.Run("it has no client", func(t *testing.T) {
		_, plan, err := runner.Executor{}.Pass(t.Context(), drain.State{}, observed(), drain.Policy{}, "node-1")
		require.ErrorIs(t, err, runner.ErrUnusable)
		require.False(t, plan.Over())
		require.NotZero(t, plan.NextCheck)
	})
	t.Run("nobody looked", func(t *testing.T) {
		cluster := execCluster(t, newNode())
		_, plan, err := execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, drain.Observation{}, drain.Policy{}, "node-1")
		require.NoError(t, err)
		require.False(t, plan.Over())
	})
}

func TestARoundByForceDoesNotWaitForTheFence(t *testing.T) {
	for name, tt := range map[string]struct {
		policy drain.Policy
		over   bool
	}{"in peace": {drain.Policy{}, false}, "after its end": {roundProceed(), true}} {
		t.Run(name, func(t *testing.T) {
			cluster := execCluster(t, openNode())
			cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
			_, plan, err := execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, execObserve(t, cluster), tt.policy, "node-1")
			require.Equal(t, tt.over, plan.Over())
			require.Equal(t, tt.over, err == nil, err)
		})
	}
}

// A round remembers what it asked for: the next one, with a cache that has seen nothing of
// it, does not ask again.
func TestDD19ARoundIsShortAndGoesOnWhereTheLastOneStopped(t *testing.T) {
	cluster := execCluster(t, newNode(), newPod("a"), newPod("b"))
	in := execObserve(t, cluster)
	client := cluster.Clientset()
	executor := execSerial(cluster, client)
	state, plan, err := executor.Pass(t.Context(), drain.State{}, in, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Len(t, client.Actions(), 2)
	require.Equal(t, drain.ReasonTerminating, plan.Rows[0].Reason)
	require.True(t, plan.NextCheck.After(now))
	_, _, err = executor.Pass(t.Context(), state, in, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Len(t, client.Actions(), 2)
}

// A state that was written down and read again goes on as if nothing had happened: waits
// are not begun anew, and nothing is asked twice.
func TestB3ResumeAfterARestart(t *testing.T) {
	cluster := execCluster(t, newNode(), newPod("a"), newPod("b"), execBudget("never", "web", 2))
	client := cluster.Clientset()
	executor := execSerial(cluster, client)
	policy := drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}}
	in := execObserve(t, cluster)
	in.Budgets = drain.List[*policyv1.PodDisruptionBudget]{} // so that the API server is asked
	state, _, err := executor.Pass(t.Context(), drain.State{}, in, policy, "node-1")
	require.NoError(t, err)
	asked := len(client.Actions())

	written, err := json.Marshal(state)
	require.NoError(t, err)
	var read drain.State
	require.NoError(t, json.Unmarshal(written, &read))
	_, want, err := executor.Pass(t.Context(), state, in, policy, "node-1")
	require.NoError(t, err)
	_, got, err := executor.Pass(t.Context(), read, in, policy, "node-1")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, now.Add(time.Hour), got.NextAt)
	require.Len(t, client.Actions(), asked)
}

// What is changed while a drain waits counts from the next round on.
func TestB3ChangedOptionsCountFromTheNextRoundOn(t *testing.T) {
	cluster := execCluster(t, newNode(), newPod("a"), execBudget("never", "web", 1))
	executor := execSerial(cluster, cluster.Client())
	in := execObserve(t, cluster)
	state, plan, err := executor.Pass(t.Context(), drain.State{}, in, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.ReasonBudgetNever, plan.Rows[0].Reason)
	_, plan, err = executor.Pass(t.Context(), state, in, drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.ReasonTerminating, plan.Rows[0].Reason)
	require.NotNil(t, execObserve(t, cluster).Pods.Items[0].DeletionTimestamp)
}
