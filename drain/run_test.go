// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// runWorld is a cluster that lives by itself, whose pods take a second to stop.
type runWorld struct {
	*draintest.Cluster

	client *fake.Clientset
	start  time.Time
}

// inRunWorld plays a story in a bubble, where time passes only when everybody waits. At its
// end no goroutine may be left.
func inRunWorld(t *testing.T, story func(t *testing.T, w *runWorld), objects ...kruntime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return time.Second }})
		require.NoError(t, cluster.Add(objects...))
		ctx, cancel := context.WithCancel(t.Context())
		var world sync.WaitGroup
		world.Go(func() { cluster.Run(ctx) })
		story(t, &runWorld{Cluster: cluster, client: cluster.Clientset(), start: time.Now()})
		cancel()
		world.Wait()
		require.Zero(t, cluster.Watching(""))
	})
}

// run drains node-1.
func (w *runWorld) run(ctx context.Context, p drain.Policy) (drain.Decision, error) {
	return runner.Executor{Client: w.client}.Run(ctx, "node-1", p)
}

// took is how long it has been since the beginning, without the few milliseconds that
// rounds keep between each other.
func (w *runWorld) took() time.Duration { return time.Since(w.start).Truncate(20 * time.Millisecond) }

// later does something while a drain is under way.
func (w *runWorld) later(t *testing.T, after time.Duration, do func(client *fake.Clientset) error) {
	time.AfterFunc(after, func() {
		if err := do(w.Clientset()); err != nil {
			t.Error(err)
		}
	})
}

func runPods(n int, edits ...func(*corev1.Pod)) []kruntime.Object {
	objects := []kruntime.Object{openNode()}
	for i := range n {
		objects = append(objects, newPod(fmt.Sprintf("web-%02d", i), edits...))
	}
	return objects
}

func TestRunDrainsANode(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		plan, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		require.Equal(t, "node-1", plan.Node)
		require.Equal(t, 50, plan.GoneSoFar)
		require.Equal(t, time.Second, w.took(), "as long as the slowest pod")
		counts := map[string]int{}
		for _, asked := range execAsked(w.client) {
			counts[asked]++
		}
		require.Equal(t, map[string]int{
			"patch nodes": 1, "create pods/eviction": 50,
			"list nodes": 1, "watch nodes": 1, "list pods": 2, "watch pods": 1,
			"list poddisruptionbudgets": 1, "watch poddisruptionbudgets": 1, "list daemonsets": 1, "watch daemonsets": 1,
		}, counts, "DD-16: nothing is polled, and each pod is asked once; the second list of pods confirms")
	}, runPods(50)...)
}

func TestDD71AnEmptyNodeTakesNoTime(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		plan, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		require.Less(t, time.Since(w.start), 50*time.Millisecond)
	}, openNode(), newPod("static", mirror))
}

func TestDD3EveryPolicyEnds(t *testing.T) {
	stuck := append(runPods(2), execBudget("never", "web", 2))
	for _, tt := range []struct {
		name    string
		ladder  drain.Ladder
		outcome drain.Outcome
		took    time.Duration
	}{
		{"given up at once", drain.Ladder{{Action: drain.GiveUp}}, drain.GaveUp, 0},
		{"given up", drain.Ladder{{After: time.Minute, Action: drain.GiveUp}}, drain.GaveUp, time.Minute},
		{"gone on without them", drain.Ladder{{After: time.Minute, Action: drain.Proceed}}, drain.Proceeded, time.Minute},
		{"deleted", drain.Ladder{{After: 10 * time.Second, Action: drain.IgnoreBudgets}, {After: time.Minute, Action: drain.Proceed}}, drain.Drained, 11 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inRunWorld(t, func(t *testing.T, w *runWorld) {
				plan, err := w.run(t.Context(), drain.Policy{Ladder: tt.ladder})
				require.Equal(t, tt.outcome, plan.Outcome)
				require.Equal(t, tt.took, w.took())
				if tt.outcome == drain.Drained {
					require.NoError(t, err)
					return
				}
				unfinished, ok := errors.AsType[*runner.UnfinishedError](err)
				require.True(t, ok, "DD-2: a deadline is no success")
				require.Equal(t, plan, unfinished.Decision)
				require.NoError(t, unfinished.Err)
				require.ErrorContains(t, err, string(tt.outcome))
			}, stuck...)
		})
	}
}

func TestRunThatNeedNotBegin(t *testing.T) {
	t.Run("without client, name or time", func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		client := draintest.New(draintest.Options{}).Clientset()
		for _, tt := range []struct {
			ctx      context.Context //nolint:containedctx // the test's own
			executor runner.Executor
			node     string
			want     error
		}{
			{t.Context(), runner.Executor{}, "node-1", runner.ErrUnusable},
			{t.Context(), runner.Executor{Client: client}, "", runner.ErrUnusable},
			{ended, runner.Executor{Client: client}, "node-1", context.Canceled},
		} {
			plan, err := tt.executor.Run(tt.ctx, tt.node, drain.Policy{})
			require.ErrorIs(t, err, tt.want)
			require.ErrorAs(t, err, new(*runner.UnfinishedError))
			require.False(t, plan.Over())
		}
		require.Empty(t, client.Actions())
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		plan, err := w.run(ctx, drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(w.start), "DD-10: at once")
		require.False(t, plan.Over())
		require.Equal(t, "node-1", plan.Node)
		require.Len(t, plan.Rows, 2, "it says what it waited for")
		unfinished, ok := errors.AsType[*runner.UnfinishedError](err)
		require.True(t, ok)
		require.Equal(t, plan, unfinished.Decision)
		require.ErrorContains(t, err, "never", "the budget that blocks")
		require.Less(t, len(w.client.Actions()), 130, "DD-61: a blocked drain is no hot loop")
	}, append(runPods(2), execBudget("never", "web", 2))...)
}

// The end of the context ends the drain, even if the API server does not answer any more.
func TestI11RunEndsWithinOneCall(t *testing.T) {
	for _, verb := range []string{"list", "watch", "patch", "create"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := draintest.New(draintest.Options{Latency: func(call draintest.Call) time.Duration {
					if call.Verb == verb {
						return time.Minute
					}
					return 0
				}})
				require.NoError(t, cluster.Add(runPods(40)...))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				start := time.Now()
				_, err := runner.Executor{Client: cluster.Client()}.Run(ctx, "node-1", drain.Policy{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.LessOrEqual(t, time.Since(start), time.Minute, "one call, for the fakes look at no context")
				time.Sleep(time.Minute) // until the fakes have answered
			})
		})
	}
}

func TestDD1RunIsNeverDoneWithoutSeeing(t *testing.T) {
	for _, resource := range []string{"pods", "nodes"} {
		for _, verb := range []string{"list", "watch"} {
			t.Run(resource+" may not be asked to "+verb, func(t *testing.T) {
				inRunWorld(t, func(t *testing.T, w *runWorld) {
					w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: verb, Resource: resource})
					policy := drain.Policy{}
					if verb == "list" {
						policy.Ladder = drain.Ladder{{Action: drain.Proceed}}
					}
					plan, err := w.run(t.Context(), policy)
					require.True(t, apierrors.IsForbidden(err), err)
					require.ErrorAs(t, err, new(*runner.UnfinishedError))
					require.ErrorContains(t, err, "observe "+resource)
					require.False(t, plan.Over())
					require.Zero(t, w.took())
				}, append(runPods(1), execBudget("never", "web", 1))...)
			})
		}
		t.Run(resource+" cannot be listed", func(t *testing.T) {
			inRunWorld(t, func(t *testing.T, w *runWorld) {
				w.Inject(draintest.Fault{Kind: draintest.InternalError, Verb: "list", Resource: resource})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				plan, err := w.run(ctx, drain.Policy{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.False(t, plan.Over())
				require.ErrorContains(t, err, "injected", "it says what was in the way")
			}, newNode())
		})
	}
	t.Run("the list that confirms fails for a while", func(t *testing.T) {
		inRunWorld(t, func(t *testing.T, w *runWorld) {
			w.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "list", Resource: "pods", Skip: 1, Times: 2})
			plan, err := w.run(t.Context(), drain.Policy{})
			require.NoError(t, err)
			require.Equal(t, drain.Drained, plan.Outcome)
			require.GreaterOrEqual(t, w.took(), 5*time.Second, "it pauses before it looks again")
		}, newNode())
	})
	t.Run("the list that confirms may not be made", func(t *testing.T) {
		inRunWorld(t, func(t *testing.T, w *runWorld) {
			w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: "pods", Skip: 1})
			plan, err := w.run(t.Context(), drain.Policy{})
			require.True(t, apierrors.IsForbidden(err), err)
			require.False(t, plan.Over())
		}, newNode())
	})
	t.Run("a server that starts late", func(t *testing.T) {
		inRunWorld(t, func(t *testing.T, w *runWorld) {
			w.Inject(draintest.Fault{Kind: draintest.Unavailable, Times: 8})
			plan, err := w.run(t.Context(), drain.Policy{})
			require.NoError(t, err)
			require.Equal(t, drain.Drained, plan.Outcome)
		}, runPods(3)...)
	})
}

func TestRunThatMayNotFenceSaysSo(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
		_, err := w.run(t.Context(), drain.Policy{})
		require.ErrorAs(t, err, new(*runner.FenceError))
		require.True(t, apierrors.IsForbidden(err))
	}, runPods(1)...)
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1})
		_, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err, "anything else is tried again")
	}, runPods(1)...)
}

func TestWhatMayNotBeWatchedIsNotEvaluated(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: "poddisruptionbudgets"},
			draintest.Fault{Kind: draintest.Forbidden, Verb: "watch", Resource: "daemonsets"})
		plan, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		require.Equal(t, []drain.Source{drain.SourceBudgets, drain.SourceDaemonSets}, plan.NotEvaluated)
	}, runPods(3)...)
}

func TestWhatCannotBeListedDoesNotHoldARun(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.Inject(draintest.Fault{Kind: draintest.InternalError, Verb: "list", Resource: "poddisruptionbudgets"})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		plan, err := w.run(ctx, drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		require.Equal(t, []drain.Source{drain.SourceBudgets}, plan.NotEvaluated)
		require.Less(t, w.took(), 5*time.Second)
	}, runPods(2)...)
}

func TestNodesThatGoWhileTheyAreDrained(t *testing.T) {
	stuck := append(runPods(1), execBudget("never", "web", 1))
	t.Run("for good", func(t *testing.T) {
		inRunWorld(t, func(t *testing.T, w *runWorld) {
			w.later(t, time.Minute/2, func(c *fake.Clientset) error {
				return c.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{})
			})
			plan, err := w.run(t.Context(), drain.Policy{})
			require.NoError(t, err)
			require.Equal(t, drain.NodeGone, plan.Outcome)
			require.Equal(t, 30*time.Second, w.took())
		}, stuck...)
	})
	t.Run("and another one takes the name", func(t *testing.T) {
		inRunWorld(t, func(t *testing.T, w *runWorld) {
			w.later(t, time.Minute/2, func(*fake.Clientset) error {
				successor := openNode()
				successor.UID = "uid-successor"
				return w.Add(successor)
			})
			plan, err := w.run(t.Context(), drain.Policy{})
			require.NoError(t, err)
			require.Equal(t, drain.NodeGone, plan.Outcome)
			node, err := w.client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
			require.NoError(t, err)
			require.False(t, node.Spec.Unschedulable, "it is somebody else's")
		}, stuck...)
	})
}

func TestDD11RunLeavesSuccessorsAlone(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.later(t, 10*time.Second, func(c *fake.Clientset) error {
			pods := c.CoreV1().Pods("shop")
			err := pods.Delete(t.Context(), "web-00", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			return errors.Join(err, w.Add(newPod("web-00", func(p *corev1.Pod) { p.UID = "uid-successor"; p.Spec.NodeName = "node-2" })))
		})
		plan, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		require.Equal(t, 10*time.Second, w.took())
		successor, err := w.client.CoreV1().Pods("shop").Get(t.Context(), "web-00", metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, successor.DeletionTimestamp)
		for _, write := range w.History() {
			require.False(t, write.UID == "uid-successor" && write.ByClient(), write)
		}
	}, append(runPods(1), execBudget("never", "web", 1))...)
}

func TestDD15APodThatWasBoundBeforeTheFenceIsSeen(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		var release func()
		w.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, kruntime.Object, error) {
			if err := w.Add(newPod("late")); err != nil { // the scheduler was faster
				t.Error(err)
			}
			return false, nil, nil
		})
		w.later(t, 500*time.Millisecond, func(*fake.Clientset) error {
			release = w.HoldWatches()
			return w.Add(newPod("later"))
		})
		w.later(t, 20*time.Second, func(*fake.Clientset) error { release(); return nil })
		plan, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		pods, err := w.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, pods.Items)
	}, runPods(1)...)
}

// Watches that break, and a past that the server has forgotten, cost a new list and nothing else.
func TestRunSurvivesAnAPIServerThatRestarts(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.later(t, 300*time.Millisecond, func(*fake.Clientset) error {
			w.DropWatches()
			w.Compact()
			w.Inject(draintest.Fault{Kind: draintest.Unavailable, Times: 20})
			return nil
		})
		w.later(t, 600*time.Millisecond, func(*fake.Clientset) error { w.DropWatches("pods"); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		plan, err := w.run(ctx, drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, plan.Outcome)
		require.Equal(t, 5, plan.GoneSoFar)
	}, runPods(5)...)
}

func TestEAFreedBudgetIsActedOnAtOnce(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		freed := w.start.Add(33 * time.Second)
		w.later(t, 33*time.Second, func(c *fake.Clientset) error {
			return sourceErr(c.PolicyV1().PodDisruptionBudgets("shop").Patch(t.Context(), "never", types.MergePatchType,
				[]byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{}))
		})
		_, err := w.run(t.Context(), drain.Policy{})
		require.NoError(t, err)
		for _, write := range w.History() {
			if write.Subresource == "eviction" {
				require.WithinDuration(t, freed, write.Time, 20*time.Millisecond)
			}
		}
		require.Equal(t, 34*time.Second, w.took())
	}, append(runPods(2), execBudget("never", "web", 2))...)
}

// runHeard collects events.
type runHeard []drain.Progress

func (h *runHeard) Observe(e drain.Progress) { *h = append(*h, e) }

func (h *runHeard) types() map[drain.ProgressType]int {
	counts := map[drain.ProgressType]int{}
	for _, e := range *h {
		counts[e.Type]++
	}
	return counts
}

func TestB3ObserversAreToldOfARun(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		var heard runHeard
		w.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1},
			draintest.Fault{Kind: draintest.Forbidden, Verb: "create", Resource: "pods/eviction", Name: "web-01", Times: 1})
		_, err := runner.Executor{Client: w.client, Observer: &heard}.Run(t.Context(), "node-1", drain.Policy{})
		require.NoError(t, err)
		types := heard.types()
		require.Equal(t, 1, types[drain.ProgressStarted])
		require.Equal(t, 2, types[drain.ProgressFenced], "once in vain")
		require.Equal(t, 4, types[drain.ProgressRequested], "one was refused first")
		require.Equal(t, 3, types[drain.ProgressGone])
		require.Equal(t, 1, types[drain.ProgressEnded])
		require.Equal(t, drain.Drained, heard[len(heard)-1].Outcome)
		failed := 0
		for _, e := range heard {
			require.Equal(t, "node-1", e.Node)
			require.NotEmpty(t, e.Subject)
			if e.Err != nil {
				failed++
			}
		}
		require.Equal(t, 2, failed)
	}, runPods(3)...)
}

func TestObserversAreToldOfTheRequestsOfARound(t *testing.T) {
	var heard runHeard
	cluster := execCluster(t, openNode(), newPod("a"))
	cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Times: 1})
	executor := execSerial(cluster, cluster.Client())
	executor.Observer = &heard
	state, _, err := executor.Pass(t.Context(), drain.State{}, execObserve(t, cluster), drain.Policy{}, "node-1")
	require.Error(t, err)
	_, _, err = executor.Pass(t.Context(), state, execObserve(t, cluster), drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, map[drain.ProgressType]int{drain.ProgressFenced: 1, drain.ProgressRequested: 1}, heard.types())
	require.Error(t, heard[0].Err)
	require.NoError(t, heard[1].Err)
}

// Rights that are taken away in the middle end the drain, and are no success.
func TestDD1RightsThatAreTakenAwayEndTheDrain(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.later(t, time.Minute, func(*fake.Clientset) error {
			w.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "pods"})
			w.DropWatches("pods")
			return nil
		})
		plan, err := w.run(t.Context(), drain.Policy{})
		require.True(t, apierrors.IsForbidden(err), err)
		require.Len(t, plan.Rows, 1, "it says what was left")
		require.Less(t, w.took(), 2*time.Minute)
	}, append(runPods(1), execBudget("never", "web", 1))...)
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		w.later(t, time.Minute, func(*fake.Clientset) error {
			w.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "poddisruptionbudgets"})
			w.DropWatches("poddisruptionbudgets")
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		plan, err := w.run(ctx, drain.Policy{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Contains(t, plan.NotEvaluated, drain.SourceBudgets, "what was known of them before is not believed any more")
	}, append(runPods(1), execBudget("never", "web", 1))...)
}

// A burst of events is looked at once or twice, not each event by itself.
func TestABurstOfEventsIsOneRound(t *testing.T) {
	inRunWorld(t, func(t *testing.T, w *runWorld) {
		rounds := 0
		policy := drain.Policy{}
		w.later(t, time.Second/2, func(c *fake.Clientset) error {
			for i := range 1000 {
				err := sourceErr(c.CoreV1().Pods("shop").Patch(t.Context(), fmt.Sprintf("web-%02d", i%50), types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i), metav1.PatchOptions{}))
				if err != nil {
					return err
				}
			}
			return nil
		})
		_, err := w.run(t.Context(), policy)
		require.NoError(t, err)
		require.Less(t, rounds, 30)
	}, runPods(50)...)
}

// Whoever runs a drain gets back what there was: no goroutine, no watch.
func TestI11RunLeavesNothingBehind(t *testing.T) {
	for name, story := range map[string]func(t *testing.T, c *draintest.Cluster) error{
		"drained": func(t *testing.T, c *draintest.Cluster) error {
			require.NoError(t, c.Add(runPods(3)...))
			c.SetNodeSilent("node-1", false)
			_, err := runner.Executor{Client: c.Client()}.Run(t.Context(), "node-1", drain.Policy{})
			return err
		},
		"cancelled": func(t *testing.T, c *draintest.Cluster) error {
			require.NoError(t, c.Add(append(runPods(3), execBudget("never", "web", 3))...))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := runner.Executor{Client: c.Client()}.Run(ctx, "node-1", drain.Policy{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return nil
		},
		"forbidden": func(t *testing.T, c *draintest.Cluster) error {
			c.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "pods"})
			_, err := runner.Executor{Client: c.Client()}.Run(t.Context(), "node-1", drain.Policy{})
			require.True(t, apierrors.IsForbidden(err))
			return nil
		},
		"there is no Node": func(t *testing.T, c *draintest.Cluster) error {
			_, err := runner.Executor{Client: c.Client()}.Run(t.Context(), "node-1", drain.Policy{})
			require.ErrorIs(t, err, runner.ErrNodeNotFound)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return 20 * time.Millisecond }})
				ctx, cancel := context.WithCancel(t.Context())
				var world sync.WaitGroup
				world.Go(func() { cluster.Run(ctx) })
				synctest.Wait()
				before := runGoroutines()
				require.NoError(t, story(t, cluster))
				synctest.Wait() // the fakes end their watches in goroutines of their own
				require.Empty(t, runNew(before, runGoroutines()), "goroutines that were not there before")
				require.Zero(t, cluster.Watching(""))
				cancel()
				world.Wait()
			})
		})
	}
}

// runGoroutines returns the goroutines there are, by their heading, with their stacks.
func runGoroutines() map[string]string {
	buffer := make([]byte, 1<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		heading, _, _ := strings.Cut(stack, " [")
		all[heading] = stack
	}
	return all
}

func runNew(before, after map[string]string) []string {
	var fresh []string
	for heading, stack := range after {
		// those of the runtime itself come and go
		if _, old := before[heading]; !old && strings.Contains(stack, "machinist") {
			fresh = append(fresh, stack)
		} else if !old && strings.Contains(stack, "client-go") {
			fresh = append(fresh, stack)
		}
	}
	slices.Sort(fresh)
	return fresh
}
