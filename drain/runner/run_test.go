// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

func TestRun_FiftyPods_EvictedOnceWithoutPolling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := w.drains(t, drain.Policy{})
		require.Equal(t, []any{"node-1", 50}, []any{d.Node, d.GoneSoFar})
		require.Equal(t, time.Second, w.took(), "the time of the slowest pod")
		require.Equal(t, map[string]int{
			"patch nodes": 1, "create pods/eviction": 50,
			"list nodes": 1, "watch nodes": 1, "list pods": 2, "watch pods": 1,
			"list poddisruptionbudgets": 1, "watch poddisruptionbudgets": 1, "list daemonsets": 1, "watch daemonsets": 1,
		}, w.requested(), "the second list of pods confirms the end")
	}, fullNode(50)...)
}

func TestRun_BurstOfEvents_IsFewPasses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.later(t, time.Second/2, func(c *fake.Clientset) error {
			var err error
			for i := range 1000 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i)
				pods := c.CoreV1().Pods("shop")
				name := fmt.Sprintf("web-%02d", i%50)
				err = errors.Join(err, second(pods.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})))
			}
			return err
		})
		passes := 0
		executor := w.executor()
		executor.Decided = func(drain.Decision) { passes++ }
		require.NoError(t, second(executor.Run(t.Context(), "node-1", drain.Policy{})))
		require.Less(t, passes, 30)
	}, fullNode(50)...)
}

func TestRun_EmptyNode_TakesNoTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.drains(t, drain.Policy{})
		require.Less(t, time.Since(w.start), 50*time.Millisecond)
	}, newNode("node-1"), newPod("static", mirror))
}

func TestRun_Ladder_EndsTheDrain(t *testing.T) {
	for _, tt := range []struct {
		ladder  drain.Ladder
		outcome drain.Outcome
		took    time.Duration
	}{
		{drain.Ladder{{Action: drain.GiveUp}}, drain.GaveUp, 0},
		{drain.Ladder{{After: time.Minute, Action: drain.GiveUp}}, drain.GaveUp, time.Minute},
		{drain.Ladder{{After: time.Minute, Action: drain.Proceed}}, drain.Proceeded, time.Minute},
		{drain.Ladder{{After: 10 * time.Second, Action: drain.IgnoreBudgets}, {After: time.Minute, Action: drain.Proceed}}, drain.Drained, 11 * time.Second},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			policy := drain.Policy{Ladder: tt.ladder}
			if tt.outcome == drain.Drained {
				w.drains(t, policy)
			} else {
				_, err := w.fails(t, policy)
				require.ErrorContains(t, err, "drain: "+string(tt.outcome)+" with pods", "an end with pods left is no success")
			}
			require.Equal(t, tt.took, w.took())
		}, stuckNode(2)...)
	}
}

// TestRun_InvalidInput_RefusedWithoutACall has calls of each method that cannot send a request.
func TestRun_InvalidInput_RefusedWithoutACall(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w := stillWorld(t, fullNode(1)...)
	run := func(ctx context.Context, e runner.Executor, node string, p drain.Policy) error {
		d, err := e.Run(ctx, node, p)
		require.ErrorAs(t, err, new(*runner.UnfinishedError))
		require.Equal(t, []any{node, false}, []any{d.Node, d.Over()})
		require.ErrorContains(t, err, node)
		return err
	}
	pass := func(ctx context.Context, e runner.Executor) error {
		_, d, err := e.Pass(ctx, drain.State{}, observed(), drain.Policy{}, "node-1")
		require.False(t, d.Over() || d.NextCheck.IsZero())
		return err
	}
	apply := func(ctx context.Context, e runner.Executor, p ...string) error {
		return second(e.Apply(ctx, requests(drain.Evict, p...)))
	}
	ctx, none, unset, some := t.Context(), runner.Executor{}, runner.Executor{Client: runner.NewClient(nil)}, w.executor()
	empty := stillWorld(t, newNode("node-1", cordoned)).executor()
	const noClient, noName = "drain: unusable: no client", "drain: unusable: no name of a node"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{run(ctx, none, "node-1", drain.Policy{}), noClient},
		{run(ctx, some, "", drain.Policy{}), noName},
		{run(over, some, "node-1", drain.Policy{}), context.Canceled.Error()},
		{run(ctx, some, "node-1", drain.Policy{Ladder: drain.Ladder{{After: -1, Action: drain.GiveUp}}}), "rung 0: its time"},
		{run(ctx, some, "node-1", drain.Policy{UnreachableLadder: drain.Ladder{{Action: "Explode"}}}), "rung 0: the acti"},
		{run(ctx, some, "node-1", drain.Policy{Cordon: nodeops.Cordon{Owner: "a/b"}}), `cordon: owner "a/b"`},
		{pass(ctx, none), noClient},
		{pass(over, empty), context.Canceled.Error()},
		{apply(ctx, none, "web-00"), noClient},
		{apply(over, some, "web-00"), context.Canceled.Error()},
		{apply(ctx, some), ""},
		{none.Uncordon(ctx, "node-1", ""), noClient},
		{unset.Uncordon(ctx, "node-1", ""), noClient},
		{some.Uncordon(ctx, "", "me"), noName},
	} {
		if tt.want == "" {
			require.NoError(t, tt.err)
			continue
		}
		require.ErrorContains(t, tt.err, tt.want)
		require.Equal(t, tt.want == context.Canceled.Error(), errors.Is(tt.err, context.Canceled))
	}
	require.Empty(t, w.client.Actions())
}

// requireNoWrites asserts that the client has only read.
func (w *world) requireNoWrites(t *testing.T) {
	t.Helper()
	for _, action := range w.client.Actions() {
		require.Contains(t, []string{"get", "list", "watch"}, action.GetVerb(), action.GetResource().Resource)
	}
}

func TestRun_NodeDoesNotExist_IsNotFound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, err := w.fails(t, drain.Policy{})
		require.True(t, apierrors.IsNotFound(err))
		require.ErrorContains(t, err, "node-1")
		require.NotEqual(t, drain.Drained, d.Outcome)
		require.Equal(t, "node-1", d.Node)
		w.requireNoWrites(t)
	}, newPod("a"))
}

func TestRun_PolicyProtectsAPod_RefusedBeforeTheCordon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, err := w.fails(t, drain.Policy{})
		require.ErrorIs(t, err, runner.ErrNotFeasible)
		require.ErrorContains(t, err, "shop/lonely")
		require.Len(t, d.Obstacles(), 1)
		require.Equal(t, []any{"lonely", drain.ReasonUnmanaged}, []any{d.Obstacles()[0].Name, d.Obstacles()[0].Reason})
		require.Empty(t, w.heard, "no progress is reported")
		w.requireNoWrites(t)
		d, _ = w.fails(t, drain.Policy{Ladder: drain.Ladder{{After: time.Minute, Action: drain.Proceed}}})
		require.Equal(t, drain.Proceeded, d.Outcome, "a ladder that proceeds makes the drain feasible")
	}, append(fullNode(2), newPod("lonely", unmanaged))...)
}

// openedNode returns a Node that an owner cordoned, and a user uncordoned.
func openedNode(t *testing.T, cordon nodeops.Cordon) *corev1.Node {
	t.Helper()
	node, _, err := cordon.Set(newNode("node-1"), now)
	require.NoError(t, err)
	node.Spec.Unschedulable = false
	return node
}

var owned = drain.Policy{Cordon: nodeops.Cordon{Owner: "updater"}}

func TestRun_UncordonedBefore_Refused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, err := w.fails(t, owned)
		require.ErrorIs(t, err, runner.ErrNotFeasible)
		require.ErrorContains(t, err, "cordon it again")
		require.Equal(t, drain.ReasonUncordoned, d.Gates[0].Reason)
		w.requireNoWrites(t)
		policy := owned
		policy.Reassert = true
		w.drains(t, policy)
	}, openedNode(t, owned.Cordon), newPod("a"))
}

// TestRun_FirstListIsOld_NothingIsRefusedForIt has a first list that is older than the last writes of
// the caller.
func TestRun_FirstListIsOld_NothingIsRefusedForIt(t *testing.T) {
	for _, before := range []runtime.Object{openedNode(t, owned.Cordon), newPod("a")} { // an uncordoned Node, and no Node
		inWorld(t, func(t *testing.T, w *world) {
			old, err := w.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			if len(old.Items) == 0 {
				require.NoError(t, w.Add(newNode("node-1")))
			}
			require.NoError(t, second(noderunner.CordonNode(t.Context(), w.Client().CoreV1().Nodes(), "node-1", "", owned.Cordon, now)))
			first := true
			w.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				defer func() { first = false }()
				return first, old, nil
			})
			w.drains(t, owned)
		}, before)
	}
}

// TestRun_BudgetNeverAllows_WaitsAndReports asserts that a drain waits for a budget, whose owner may
// change it, and for a pod that appears later. Both are reported once.
func TestRun_BudgetNeverAllows_WaitsAndReports(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.later(t, 10*time.Second, func(*fake.Clientset) error { return w.Add(newPod("lonely", unmanaged, ofApp("lonely"))) })
		d, err := w.fails(t, drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(w.start), "the drain ends at once with its context")
		require.NotErrorIs(t, err, runner.ErrNotFeasible)
		require.ErrorContains(t, err, "shop/never")
		require.False(t, d.Over())
		require.Len(t, d.Obstacles(), 2)
		require.Less(t, len(w.client.Actions()), 130, "a blocked drain makes few requests")
		require.Equal(t, map[drain.ProgressType]int{drain.ProgressStarted: 1, drain.ProgressCordoned: 1, drain.ProgressWaiting: 2}, w.reported())
		waiting := w.heard[2]
		require.Equal(t, []any{"pod/shop/web-00", drain.ReasonBudgetNever}, []any{waiting.Subject, waiting.Reason})
		require.WithinDuration(t, w.start, waiting.Time, time.Second)
		require.Equal(t, drain.ReasonUnmanaged, w.heard[3].Reason)
	}, stuckNode(1)...)
}

// TestRun_CordonFails_EvictsOnlyAfterIt asserts that no waits for pods are reported before the
// Node is cordoned.
func TestRun_CordonFails_EvictsOnlyAfterIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 3})
		_, err := w.run(t, drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var reported []string
		for _, e := range w.heard {
			reported = append(reported, string(e.Type))
			if e.Type == drain.ProgressCordoned {
				require.Equal(t, len(reported) < 5, e.Err != nil) // the fourth attempt succeeds
			}
		}
		require.Equal(t, []string{"Cordoned", "Started", "Cordoned", "Cordoned", "Cordoned", "Waiting"}, reported)
	}, stuckNode(1)...)
	inWorld(t, func(t *testing.T, w *world) {
		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
		_, err := w.run(t, drain.Policy{})
		require.ErrorContains(t, err, "cordon node node-1: ")
		require.True(t, apierrors.IsForbidden(err))
	}, fullNode(1)...)
}

// TestRun_UncordonedBeforeTheWatchShowsTheCordon_Stops uncordons the Node before the watch shows the
// cordon. The drain knows its cordon from the response, and does not set it again.
func TestRun_UncordonedBeforeTheWatchShowsTheCordon_Stops(t *testing.T) {
	for _, policy := range []drain.Policy{{}, {Cordon: nodeops.Cordon{Owner: "one", ExcludeFromLoadBalancers: true}}} {
		for _, late := range []bool{false, true} {
			inWorld(t, func(t *testing.T, w *world) {
				release := w.HoldWatches()
				w.onWait = func() {
					require.NoError(t, second(w.Client().CoreV1().Nodes().Patch(t.Context(), "node-1", types.StrategicMergePatchType,
						[]byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})))
					if !late {
						release() // both changes are observed at once
						return
					}
					time.AfterFunc(time.Minute, release) // until then the observed Node is older
				}
				d, err := w.run(t, policy)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, drain.ReasonUncordoned, d.Gates[0].Reason, "%v", w.heard)
				require.False(t, w.observe(t).Node.Spec.Unschedulable, "the Node is not cordoned again")
			}, stuckNode(1)...)
		}
	}
}

// TestRun_ServerHangs_EndsWithinOneCall asserts that the end of the context ends the drain, even if
// the API server does not respond.
func TestRun_ServerHangs_EndsWithinOneCall(t *testing.T) {
	for _, verb := range []string{"list", "watch", "patch", "create"} {
		synctest.Test(t, func(t *testing.T) {
			cluster := draintest.New(draintest.Options{Latency: func(call draintest.Call) time.Duration {
				if call.Verb == verb {
					return time.Minute
				}
				return 0
			}})
			require.NoError(t, cluster.Add(fullNode(40)...))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			start := time.Now()
			_, err := runner.Executor{Client: runner.NewClient(cluster.Client())}.Run(ctx, "node-1", drain.Policy{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.LessOrEqual(t, time.Since(start), time.Minute, "one call: the fakes ignore the context")
			time.Sleep(time.Minute) // until the fakes return
		})
	}
}

func TestRun_SourceFails_IsNotDrained(t *testing.T) {
	for resource, verb := range map[string]string{"pods": "list", "nodes": "get"} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: resource})
			d, err := w.fails(t, drain.Policy{Ladder: drain.Ladder{{Action: drain.Proceed}}})
			require.True(t, apierrors.IsForbidden(err), err)
			var refused *runner.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, []string{verb, resource, ""}, []string{refused.Verb, refused.Resource, refused.Pod})
			require.ErrorContains(t, err, "observe "+resource)
			require.False(t, d.Over())
			require.Zero(t, w.took())
		}, stuckNode(1)...)
		inWorld(t, func(t *testing.T, w *world) {
			w.Inject(draintest.Fault{Kind: draintest.InternalError, Verb: "list", Resource: resource})
			d, err := w.fails(t, drain.Policy{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.False(t, d.Over())
			require.ErrorContains(t, err, "injected", "the error has the cause")
		}, newNode("node-1"))
	}
	for name, tt := range map[string]struct {
		fault  draintest.Fault
		longer time.Duration
		done   bool
	}{
		"the confirming list fails twice":  {draintest.Fault{Kind: draintest.Unavailable, Verb: "list", Resource: "pods", Skip: 1, Times: 2}, 5 * time.Second, true},
		"the confirming list is forbidden": {draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: "pods", Skip: 1}, 0, false},
		"the API server starts late":       {draintest.Fault{Kind: draintest.Unavailable, Times: 8}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Inject(tt.fault)
				d, err := w.run(t, drain.Policy{})
				require.Equal(t, tt.done, err == nil, err)
				require.Equal(t, !tt.done, apierrors.IsForbidden(err))
				require.Equal(t, tt.done, d.Outcome == drain.Drained)
				require.GreaterOrEqual(t, w.took(), tt.longer, "it pauses before the next list")
			}, newNode("node-1"))
		})
	}
}

// TestRun_BudgetsCannotBeListed_AreNotEvaluated asserts that an optional source holds no drain,
// whether it is forbidden or fails. DaemonSets that may not be listed are read one by one.
func TestRun_BudgetsCannotBeListed_AreNotEvaluated(t *testing.T) {
	for kind, want := range map[draintest.FaultKind][]drain.Source{
		draintest.Forbidden: {drain.SourceBudgets}, draintest.InternalError: {drain.SourceBudgets, drain.SourceDaemonSets},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Inject(draintest.Fault{Kind: kind, Verb: "list", Resource: "poddisruptionbudgets"},
				draintest.Fault{Kind: kind, Verb: "watch", Resource: "daemonsets"}, draintest.Fault{Kind: kind, Verb: "list", Resource: "daemonsets"})
			var missing []drain.Source
			executor := w.executor()
			executor.Decided = func(d drain.Decision) { missing = append(missing, d.NotEvaluated...) }
			d, err := executor.Run(t.Context(), "node-1", drain.Policy{})
			require.NoError(t, err)
			require.Equal(t, drain.Drained, d.Outcome)
			slices.Sort(missing)
			require.Equal(t, want, slices.Compact(missing))
			require.Less(t, w.took(), 5*time.Second)
		}, fullNode(3)...)
	}
}

func TestRun_PermissionIsRemoved_EndsIfTheListIsRequired(t *testing.T) {
	for resource, ends := range map[string]bool{"pods": true, "poddisruptionbudgets": false} {
		inWorld(t, func(t *testing.T, w *world) {
			w.later(t, time.Minute, func(*fake.Clientset) error {
				w.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: resource})
				w.DropWatches(resource)
				return nil
			})
			d, err := w.run(t, drain.Policy{})
			require.Len(t, d.Rows, 1, "the decision has the pods that are left")
			if ends {
				require.True(t, apierrors.IsForbidden(err), err)
				require.Less(t, w.took(), 2*time.Minute)
				return
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Contains(t, d.NotEvaluated, drain.SourceBudgets, "an older list does not count")
		}, stuckNode(1)...)
	}
}

func TestRun_NodeIsDeleted_EndsAndIgnoresItsSuccessor(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.later(t, time.Minute/2, func(c *fake.Clientset) error {
				if replaced {
					return w.Add(newNode("node-1", func(n *corev1.Node) { n.UID = "uid-successor" }))
				}
				return c.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{})
			})
			d, err := w.run(t, drain.Policy{})
			require.NoError(t, err)
			require.Equal(t, []any{drain.NodeGone, 30 * time.Second}, []any{d.Outcome, w.took()})
			require.False(t, replaced && w.observe(t).Node.Spec.Unschedulable)
		}, stuckNode(1)...)
	}
}

// TestRun_NodeIsReplacedBeforeItsCordon_EndsAsNodeGone has a successor of the Node that the watch does not show yet.
func TestRun_NodeIsReplacedBeforeItsCordon_EndsAsNodeGone(t *testing.T) {
	for _, p := range []drain.Policy{{}, {Cordon: nodeops.Cordon{Owner: "me"}}} {
		inWorld(t, func(t *testing.T, w *world) {
			replace := sync.OnceFunc(func() {
				require.NoError(t, w.Add(newNode("node-1", func(n *corev1.Node) { n.UID, n.ResourceVersion = "uid-successor", "" })))
			})
			w.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				replace()
				return false, nil, nil
			})
			d, err := w.run(t, p)
			require.NoError(t, err)
			require.Equal(t, drain.NodeGone, d.Outcome)
		}, fullNode(2)...)
	}
}

func TestRun_PodIsReplacedElsewhere_IgnoresTheSuccessor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.later(t, 10*time.Second, func(c *fake.Clientset) error {
			err := c.CoreV1().Pods("shop").Delete(t.Context(), "web-00", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
			return errors.Join(err, w.Add(newPod("web-00", withUID("uid-successor"), onNode("node-2"))))
		})
		w.drains(t, drain.Policy{})
		require.Equal(t, 10*time.Second, w.took())
		for _, write := range w.History() {
			require.False(t, write.UID == "uid-successor" && write.ByClient(), write)
		}
	}, stuckNode(1)...)
}

func TestRun_PodsAreBoundBeforeTheCordon_AreEvictedToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var release func()
		w.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			if err := w.Add(newPod("late")); err != nil { // the scheduler was faster than the cordon
				t.Error(err)
			}
			return false, nil, nil
		})
		w.later(t, 500*time.Millisecond, func(*fake.Clientset) error {
			release = w.HoldWatches()
			return w.Add(newPod("later"))
		})
		w.later(t, 20*time.Second, func(*fake.Clientset) error { release(); return nil })
		w.drains(t, drain.Policy{})
		require.Empty(t, w.observe(t).Pods.Items)
	}, fullNode(1)...)
}

// TestRun_ServerRestarts_Continues asserts that broken watches and expired resource versions cause a
// new list and nothing else.
func TestRun_ServerRestarts_Continues(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.later(t, 300*time.Millisecond, func(*fake.Clientset) error {
			w.DropWatches()
			w.Compact()
			w.Inject(draintest.Fault{Kind: draintest.Unavailable, Times: 20})
			return nil
		})
		w.later(t, 600*time.Millisecond, func(*fake.Clientset) error { w.DropWatches("pods"); return nil })
		require.Equal(t, 5, w.drains(t, drain.Policy{}).GoneSoFar)
	}, fullNode(5)...)
}

// TestRun_BudgetIsFreed_EvictsAndEndsAtOnce asserts that the drain reacts at once to a budget that
// allows more, and to the end of the last pod.
func TestRun_BudgetIsFreed_EvictsAndEndsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		freed := w.start.Add(33 * time.Second)
		w.later(t, 33*time.Second, func(c *fake.Clientset) error {
			return second(c.PolicyV1().PodDisruptionBudgets("shop").Patch(t.Context(), "never", types.MergePatchType,
				[]byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{}))
		})
		require.NoError(t, second(w.run(t, drain.Policy{})))
		evicted := 0
		for _, write := range w.History() {
			if write.Subresource == "eviction" {
				require.WithinDuration(t, freed, write.Time, 20*time.Millisecond)
				evicted++
			}
		}
		require.Positive(t, evicted)
		require.Equal(t, 34*time.Second, w.took())
	}, stuckNode(20)...)
}

func TestRun_Observer_ReceivesAllProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1},
			draintest.Fault{Kind: draintest.InternalError, Verb: "create", Resource: "pods/eviction", Name: "web-01", Times: 1})
		require.NoError(t, second(w.run(t, drain.Policy{})))
		reported := w.reported()
		require.Equal(t, []int{1, 2, 4, 3, 1}, []int{
			reported[drain.ProgressStarted], reported[drain.ProgressCordoned], reported[drain.ProgressRequested], reported[drain.ProgressGone], reported[drain.ProgressEnded],
		}, "the first cordon and one request were refused")
		require.Equal(t, drain.Drained, w.heard[len(w.heard)-1].Outcome)
		failed := 0
		for _, e := range w.heard {
			require.Equal(t, "node-1", e.Node)
			require.NotEmpty(t, e.Subject)
			if e.Err != nil {
				failed++
			}
		}
		require.Equal(t, 2, failed)
	}, fullNode(3)...)
}
