// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// byName returns rules by the names of pods.
func byName(rules map[string]drain.Rule) func(*corev1.Pod) drain.Rule {
	return func(pod *corev1.Pod) drain.Rule { return rules[pod.Name] }
}

// evictions returns the names of the pods that were evicted, in order.
func (w *world) evictions() []string {
	var names []string
	for _, write := range w.History() {
		if write.Subresource == "eviction" {
			names = append(names, write.Name)
		}
	}
	return slices.Compact(names) // an eviction has two writes
}

// TestRules_OwnPodAndOrder_HoldInRunPassAndDryRun has a tool that runs on the drained Node: nothing evicts
// it, also not after the list that confirms the end.
func TestRules_OwnPodAndOrder_HoldInRunPassAndDryRun(t *testing.T) {
	policy := drain.Policy{Rules: byName(map[string]drain.Rule{"self": {Action: drain.Ignore, Reason: "Self"}, "db": {Wave: 7}, "cache": {Wave: 3}, "proxy": {Wave: -1}})}
	pods := []runtime.Object{newNode("node-1"), newPod("self"), newPod("db"), newPod("cache"), newPod("web"), newPod("dns", critical), newPod("proxy")}
	inWorld(t, func(t *testing.T, w *world) {
		in, err := runner.Observe(t.Context(), runner.NewClient(w.client), "node-1", policy, drain.State{})
		require.NoError(t, err)
		rows := drain.Decide(in, policy, w.Clock().Now()).Rows
		i := slices.IndexFunc(rows, func(r drain.Row) bool { return r.Name == "self" })
		require.Equal(t, []any{drain.Ignore, "Self"}, []any{rows[i].Action, string(rows[i].Reason)})

		d, err := w.run(t, policy)
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
		require.Equal(t, []string{"proxy", "web", "dns", "cache", "db"}, w.evictions())

		in.Node, in.Pods = w.observe(t).Node, drain.All[*corev1.Pod]() // a cache without the pod
		_, d, err = w.pass(t, drain.State{}, in, policy)
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
		require.Len(t, w.evictions(), 5)
	}, pods...)
}

// TestRules_WaitingPod_UsesNoBudget has two pods of a budget that allows one disruption. The first one waits for
// a rule of the tool, so the second one is evicted.
func TestRules_WaitingPod_UsesNoBudget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		released := w.start.Add(10*time.Minute + 20*time.Second)
		policy := drain.Policy{Rules: func(pod *corev1.Pod) drain.Rule {
			if pod.Name == "a-job" && time.Now().Before(released) {
				return drain.Rule{Action: drain.Wait, Reason: "JobRuns", Until: released}
			}
			return drain.Rule{}
		}}
		w.later(t, time.Minute, func(c *fake.Clientset) error {
			require.Equal(t, []string{"b-web"}, w.evictions())
			return w.Add(newPod("c-web", onNode("node-2")))
		})
		d, err := w.run(t, policy)
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
		require.Equal(t, 10*time.Minute+21*time.Second, w.took(), "it looks again when the rule says")
		require.True(t, slices.ContainsFunc(w.heard, func(p drain.Progress) bool {
			return p.Type == drain.ProgressWaiting && p.Subject == "pod/shop/a-job" && p.Reason == "JobRuns"
		}))
	}, newNode("node-1"), newPod("a-job"), newPod("b-web"), newPod("other", onNode("node-2")), newBudget("web", "web", 2))
}

func TestRun_SkippedByThePolicy_IsNoError(t *testing.T) {
	for name, policy := range map[string]drain.Policy{
		"a time": {SkipTerminatingAfter: time.Minute}, "a rule": {Rules: byName(map[string]drain.Rule{"slow": {SkipEnd: true}})},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d, err := w.run(t, policy)
				require.NoError(t, err)
				require.Equal(t, drain.Proceeded, d.Outcome)
				require.Less(t, w.took(), 2*time.Minute)
			}, newNode("node-1"), newPod("web"), newPod("slow", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/slow"} }))
		})
	}
}

// TestRun_FewRights_PollsAndEnds has clients that may not watch, list or get what others may.
func TestRun_FewRights_PollsAndEnds(t *testing.T) {
	forbid := func(rights ...string) []draintest.Fault {
		var faults []draintest.Fault
		for i := 0; i < len(rights); i += 2 {
			faults = append(faults, draintest.Fault{Kind: draintest.Forbidden, Verb: rights[i], Resource: rights[i+1]})
		}
		return faults
	}
	for name, faults := range map[string][]draintest.Fault{
		"a reboot daemon":            forbid("list", "nodes", "watch", "nodes", "watch", "pods", "list", "poddisruptionbudgets", "watch", "poddisruptionbudgets", "list", "daemonsets", "watch", "daemonsets"),
		"no watch of pods":           forbid("watch", "pods"),
		"no watch at all":            forbid("watch", ""),
		"nothing about DaemonSets":   forbid("", "daemonsets"),
		"no watch of its own budget": forbid("watch", "poddisruptionbudgets"),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Inject(faults...)
				d, err := w.run(t, drain.Policy{})
				require.NoError(t, err)
				require.Equal(t, drain.Drained, d.Outcome)
				require.LessOrEqual(t, w.took(), 15*time.Second)
				require.Less(t, len(w.client.Actions()), 60)
			}, append(fullNode(3), daemonSet, newPod("agent", ownedBy("DaemonSet")), newBudget("web", "web", 1))...)
		})
	}
}

// requestsOnly is a client of another kind than that of NewClient.
type requestsOnly struct{ runner.Client }

// TestRun_ClientWithoutWatch_PollsAtThePaceOfThePolicy asserts that a client of the caller needs no watch.
func TestRun_ClientWithoutWatch_PollsAtThePaceOfThePolicy(t *testing.T) {
	took := map[time.Duration]time.Duration{}
	for _, pace := range []time.Duration{0, time.Second} {
		inWorld(t, func(t *testing.T, w *world) {
			d, err := runner.Executor{Client: requestsOnly{runner.NewClient(w.client)}}.Run(t.Context(), "node-1", drain.Policy{RetryEvery: pace})
			require.NoError(t, err)
			require.Equal(t, drain.Drained, d.Outcome)
			took[pace] = w.took()
			for _, action := range w.client.Actions() {
				require.NotEqual(t, "watch", action.GetVerb())
			}
		}, fullNode(3)...)
	}
	require.Equal(t, 5*time.Second, took[0])
	require.LessOrEqual(t, took[time.Second], 2*time.Second)
}

// TestRun_RefusedForGood_EndsWithTheRequest has pods whose eviction is refused, beside one that goes.
func TestRun_RefusedForGood_EndsWithTheRequest(t *testing.T) {
	refusals := map[string]error{
		"forbidden": apierrors.NewForbidden(corev1.Resource("pods"), "web-00", errors.New("no right")),
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-00", nil),
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
					create, ok := a.(clienttesting.CreateAction)
					return ok && create.GetObject().(*policyv1.Eviction).Name == "web-00", nil, refusal //nolint:forcetypeassert // only evictions
				})
				d, err := w.run(t, drain.Policy{})
				require.ErrorIs(t, err, runner.ErrObstacles)
				var refused *runner.RefusedError
				ok := errors.As(err, &refused)
				require.True(t, ok)
				require.Equal(t, runner.RefusedError{Verb: "create", Resource: "pods/eviction", Pod: "shop/web-00", Err: refusal}, *refused)
				require.ErrorContains(t, err, "create pods/eviction of pod shop/web-00")
				require.False(t, d.Over())
				require.Equal(t, time.Second, w.took(), "after the end of the other pod")
			}, fullNode(2)...)
		})
	}
}

// TestRun_NamespaceIsTerminating_IsRetried asserts that only refusals that cannot heal end a drain.
func TestRun_NamespaceIsTerminating_IsRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refusal := apierrors.NewForbidden(corev1.Resource("pods"), "web-00", errors.New("it is being terminated"))
		refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		first := true
		w.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			defer func() { first = false }()
			return first, nil, refusal
		})
		d, err := w.run(t, drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
	}, fullNode(1)...)
}

// TestRun_UnmanagedPodAppears_EndsWithObstacles has a pod that the policy protects, created during the drain.
func TestRun_UnmanagedPodAppears_EndsWithObstacles(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.later(t, 500*time.Millisecond, func(*fake.Clientset) error { return w.Add(newPod("lonely", unmanaged)) })
		_, err := w.run(t, drain.Policy{})
		require.ErrorIs(t, err, runner.ErrObstacles)
		require.ErrorContains(t, err, "pod/shop/lonely: Unmanaged")
		require.Equal(t, time.Second, w.took())
	}, fullNode(2)...)
}

// TestRun_UncordonedAtTheEnd_WaitsForTheCordon has a Node that a user uncordons while the last pod terminates, and
// cordons again.
func TestRun_UncordonedAtTheEnd_WaitsForTheCordon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		set := func(unschedulable string) func(c *fake.Clientset) error {
			return func(c *fake.Clientset) error {
				patch := []byte(`{"spec":{"unschedulable":` + unschedulable + `}}`)
				return second(c.CoreV1().Nodes().Patch(t.Context(), "node-1", types.MergePatchType, patch, metav1.PatchOptions{}))
			}
		}
		w.later(t, 500*time.Millisecond, set("false"))
		w.later(t, 5*time.Second, set("true"))
		d, err := w.run(t, owned)
		require.NoError(t, err)
		require.Equal(t, []any{drain.Drained, 5 * time.Second}, []any{d.Outcome, w.took()})
	}, fullNode(1)...)
}

func TestObserver_Pod_IsTheObservedOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var seen []string
		observer := runner.ObserverFunc(func(p drain.Progress) {
			if p.Row != nil {
				require.NotNil(t, p.Pod, p)
				seen = append(seen, string(p.Type)+" "+p.Pod.Name+" "+string(p.Pod.UID))
			}
		})
		_, err := runner.Executor{Client: runner.NewClient(w.client), Observer: observer}.Run(t.Context(), "node-1", drain.Policy{})
		require.NoError(t, err)
		require.Contains(t, seen, "Requested web-00 uid-web-00")
		require.Contains(t, seen, "Gone web-00 uid-web-00")
	}, fullNode(1)...)
}

// TestRun_GraceOfZero_DeletesAtOnce and warns about what is lost.
func TestRun_GraceOfZero_DeletesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var lost []string
		e := w.executor()
		e.Observer = runner.ObserverFunc(func(p drain.Progress) {
			if p.Type == drain.ProgressRequested {
				lost = append(lost, p.Row.Name+": "+p.Message)
			}
		})
		d, err := e.Run(ctx, "node-1", drain.Policy{Grace: ptr.To(time.Duration(0)), EvictUnmanaged: true, EvictLocalStorage: true})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
		require.Zero(t, w.took())
		require.Equal(t, []string{"both: no controller would create it again, and its emptyDir volumes would be lost", "web: "}, lost)
	}, newNode("node-1"), newPod("both", unmanaged, emptyDir), newPod("web"))
}
