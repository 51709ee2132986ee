// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// ended is a policy whose ladder has ended.
var ended = drain.Policy{EscalateFrom: now.Add(-time.Hour), Ladder: drain.Ladder{{After: time.Minute, Action: drain.Proceed}}}

// TestPass_CacheShowsNoPods_ListsThemBeforeTheEnd asserts that one list from the API server,
// without a pause, confirms the end, since a cache may show too few pods.
func TestPass_CacheShowsNoPods_ListsThemBeforeTheEnd(t *testing.T) {
	w := stillWorld(t, newNode("node-1", cordoned), newPod("late"))
	state, d, err := w.pass(t, drain.State{}, observed(), drain.Policy{})
	require.NoError(t, err)
	require.Equal(t, drain.Draining, d.Outcome)
	require.Len(t, d.Holds(), 1)
	require.Len(t, state.Pods, 1)
	require.NotNil(t, w.observe(t).Pods.Items[0].DeletionTimestamp, "the pod was evicted")

	w = stillWorld(t, newNode("node-1", cordoned), newPod("elsewhere", onNode("node-2")))
	_, d, err = w.pass(t, drain.State{}, observed(), drain.Policy{})
	require.NoError(t, err)
	require.Equal(t, drain.Drained, d.Outcome)
	require.Equal(t, map[string]int{"list pods": 1}, w.requested())
}

// TestPass_ListShowsAPodOfADaemonSet_IsNotEvicted asserts that a pod that only the last list shows
// is not evicted because its DaemonSet was not observed.
func TestPass_ListShowsAPodOfADaemonSet_IsNotEvicted(t *testing.T) {
	behind := observed()
	behind.DaemonSets = drain.All[*appsv1.DaemonSet]()
	w := stillWorld(t, newNode("node-1", cordoned), newPod("agent", ownedBy("DaemonSet")))
	_, d, err := w.pass(t, drain.State{}, behind, drain.Policy{})
	require.NoError(t, err)
	require.Equal(t, drain.Drained, d.Outcome)
	require.Equal(t, map[string]int{"list pods": 1}, w.requested())
}

// TestPass_EmptyOpenNode_EndsAfterTheCordonIsSeen asserts that the confirming list is requested
// after the cordon was observed, so that it has every pod that was scheduled before.
func TestPass_EmptyOpenNode_EndsAfterTheCordonIsSeen(t *testing.T) {
	w := stillWorld(t, newNode("node-1"))
	in := w.observe(t)
	state, d, err := w.pass(t, drain.State{}, in, drain.Policy{})
	require.NoError(t, err)
	require.Equal(t, drain.Draining, d.Outcome)
	require.Equal(t, map[string]int{"patch nodes": 1}, w.requested())
	_, d, err = w.pass(t, state, w.observe(t), drain.Policy{})
	require.NoError(t, err)
	require.Equal(t, drain.Drained, d.Outcome)
	require.Equal(t, map[string]int{"patch nodes": 1, "list pods": 1}, w.requested())
}

func TestPass_PodsAreRefused_ReportsWhyAndEvictsTheOthers(t *testing.T) {
	w := stillWorld(t, newNode("node-1", cordoned), newBudget("b1", "two", 1), newBudget("b2", "two", 1), newBudget("b3", "one", 1),
		newPod("a", ofApp("two")), newPod("b", ofApp("one")), newPod("c"), newPod("d"))
	w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "create", Resource: "pods", Name: "d"})
	in := w.observe(t)
	in.Budgets = drain.List[*policyv1.PodDisruptionBudget]{} // so that the API server decides
	state, d, err := w.pass(t, drain.State{}, in, drain.Policy{})
	require.NoError(t, err, "an error for a pod is in the decision")
	var reasons []machinist.Reason
	for _, row := range d.Rows {
		reasons = append(reasons, row.Reason)
	}
	require.Equal(t, []machinist.Reason{"Refused", drain.ReasonBudget, drain.ReasonTerminating, "Forbidden"}, reasons)
	require.WithinDuration(t, now.Add(5*time.Second), d.NextCheck, time.Second)
	require.NotEmpty(t, state.Pods)
	require.Empty(t, in.Results, "the argument is not changed")
}

// TestPass_PodsCannotBeListed_IsNotOver asserts that a drain does not end while a list fails.
func TestPass_PodsCannotBeListed_IsNotOver(t *testing.T) {
	for name, policy := range map[string]drain.Policy{"without ladder": {}, "after its end": ended} {
		for _, kind := range []draintest.FaultKind{draintest.Forbidden, draintest.InternalError, draintest.Timeout} {
			w := stillWorld(t, newNode("node-1", cordoned))
			w.Inject(draintest.Fault{Kind: kind, Verb: "list", Resource: "pods"})
			state, d, err := w.pass(t, drain.State{}, observed(), policy)
			require.Equal(t, kind == draintest.Forbidden, apierrors.IsForbidden(err), name)
			require.Error(t, err)
			require.Equal(t, []any{drain.Draining, drain.ReasonNotObserved, "node-1", now.Add(5 * time.Second)}, []any{d.Outcome, d.Reason, d.Node, d.NextCheck})
			require.Equal(t, drain.State{}, state)
		}
	}
	_, d, err := stillWorld(t).pass(t, drain.State{}, drain.Observation{}, drain.Policy{})
	require.NoError(t, err)
	require.False(t, d.Over(), "nothing was observed")
}

func TestPass_CordonIsRefused_EndsByTheLadderAlone(t *testing.T) {
	for over, policy := range map[bool]drain.Policy{false: {}, true: ended} {
		w := stillWorld(t, newNode("node-1"))
		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
		_, d, err := w.pass(t, drain.State{}, w.observe(t), policy)
		require.Equal(t, over, d.Over())
		require.Equal(t, over, err == nil, err)
	}
}

// TestPass_StateIsKept_ContinuesTheDrain asserts that a pass with the state of the
// previous one, also as JSON, repeats no request and restarts no wait. The cache is older than the
// requests.
func TestPass_StateIsKept_ContinuesTheDrain(t *testing.T) {
	policy := drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}}
	w := stillWorld(t, newNode("node-1", cordoned), newPod("a"), newPod("b", ofApp("kept")), newPod("c"), newBudget("never", "kept", 1))
	in := w.observe(t)
	in.Budgets = drain.List[*policyv1.PodDisruptionBudget]{} // so that the API server decides
	require.NoError(t, w.Add(newPod("c", withUID("uid-successor"))))
	state, d, err := w.pass(t, drain.State{}, in, policy)
	require.NoError(t, err)
	require.Equal(t, drain.ReasonTerminating, d.Rows[0].Reason)
	require.EqualValues(t, "Refused", d.Rows[2].Reason, "the pod has another UID")
	require.True(t, d.NextCheck.After(now))
	require.Equal(t, map[string]int{"create pods/eviction": 3}, w.requested())
	_, want, err := w.pass(t, state, in, policy)
	require.NoError(t, err)
	_, got, err := w.pass(t, stored(t, state), in, policy)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, now.Add(time.Hour), got.NextAt)
	require.Equal(t, map[string]int{"create pods/eviction": 3}, w.requested())
}

func TestPass_Observer_ReceivesRequestsAndFailedCordons(t *testing.T) {
	w := stillWorld(t, newNode("node-1"), newPod("a"))
	w.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1})
	for _, fails := range []bool{true, false} {
		_, _, err := w.pass(t, drain.State{}, w.observe(t), drain.Policy{})
		require.Equal(t, fails, err != nil)
	}
	require.Equal(t, map[drain.ProgressType]int{drain.ProgressCordoned: 1, drain.ProgressRequested: 1}, w.reported())
	require.Error(t, w.heard[0].Err)
	require.NoError(t, w.heard[1].Err)
}

// TestPass_RefusedForTwoHours_SinceCountsFromTheFirstRefusal asserts that a repeated request does not
// restart the wait.
func TestPass_RefusedForTwoHours_SinceCountsFromTheFirstRefusal(t *testing.T) {
	for name, f := range map[string]draintest.Fault{
		"forbidden":                       {Kind: draintest.Forbidden, Resource: "pods", Subresource: "eviction"},
		"internal error":                  {Kind: draintest.InternalError, Resource: "pods", Subresource: "eviction"},
		"budget that cannot be evaluated": {Kind: draintest.Forbidden, Resource: "poddisruptionbudgets"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Inject(f)
				var s drain.State
				var d drain.Decision
				for w.took() < 2*time.Hour {
					in, err := runner.Observe(t.Context(), runner.NewClient(w.client), "node-1", drain.Policy{}, s)
					require.NoError(t, err)
					s, d, err = w.pass(t, s, in, drain.Policy{})
					require.NoError(t, err)
					require.Equal(t, drain.Draining, d.Outcome, d)
					time.Sleep(max(time.Second, time.Until(d.NextCheck)))
				}
				require.Len(t, d.Rows, 1)
				require.Less(t, d.Rows[0].Since.Sub(w.start), time.Minute, d.Rows[0].String())
			}, newNode("node-1"), newPod("a", ofApp("web")), newBudget("web", "web", 1))
		})
	}
}
