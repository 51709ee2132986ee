// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist"
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

// TestRules_OwnPodAndOrder_HoldInRunAndPass has a tool that runs on the drained Node: nothing evicts
// it, also not after the list that confirms the end.
func TestRules_OwnPodAndOrder_HoldInRunAndPass(t *testing.T) {
	policy := drain.Policy{Rules: byName(map[string]drain.Rule{"self": {Action: drain.Ignore, Reason: "Self"}, "db": {Wave: 7}, "cache": {Wave: 3}, "proxy": {Wave: -1}})}
	pods := []runtime.Object{newNode("node-1"), newPod("self"), newPod("db"), newPod("cache"), newPod("web"), newPod("dns", critical), newPod("proxy")}
	inWorld(t, func(t *testing.T, w *world) {
		w.drains(t, policy)
		require.Equal(t, []string{"proxy", "web", "dns", "cache", "db"}, w.evictions())

		in := w.observe(t)
		in.Pods.Items = nil // a cache without the pod
		_, d, err := w.pass(t, drain.State{}, in, policy)
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
		require.Len(t, w.evictions(), 5)
	}, pods...)
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
				w.drains(t, drain.Policy{})
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
				require.ErrorAs(t, err, &refused)
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
		w.drains(t, drain.Policy{})
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
		w.drains(t, owned)
		require.Equal(t, 5*time.Second, w.took())
	}, fullNode(1)...)
}

func TestObserver_Pod_IsTheObservedOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		executor := w.executor()
		executor.Observer = runner.ObserverFunc(w.Observe)
		require.NoError(t, second(executor.Run(t.Context(), "node-1", drain.Policy{})))
		var seen []string
		for _, p := range w.heard {
			if p.Row != nil {
				seen = append(seen, fmt.Sprint(p.Type, " ", p.Pod.Name, " ", p.Pod.UID))
			}
		}
		require.Equal(t, []string{"Requested web-00 uid-web-00", "Gone web-00 uid-web-00"}, seen)
	}, fullNode(1)...)
}

// evictingClientset returns a fake clientset of client-go with node-1, these pods and a count of evictions.
func evictingClientset(t *testing.T, pods ...runtime.Object) (*fake.Clientset, *int) {
	client, evicted := fake.NewClientset(append(pods, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})...), 0
	client.PrependReactor("create", "pods/eviction", func(a clienttesting.Action) (bool, runtime.Object, error) {
		eviction := a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction) //nolint:forcetypeassert // an eviction
		pod, err := client.Tracker().Get(podsResource, eviction.Namespace, eviction.Name)
		require.NoError(t, err)
		require.Equal(t, pod.(*corev1.Pod).UID == "", eviction.DeleteOptions.Preconditions == nil)
		evicted++
		return true, nil, client.Tracker().Delete(podsResource, eviction.Namespace, eviction.Name)
	})
	return client, &evicted
}

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// TestRun_FakeClientset_PodsWithoutUIDGo drains over the fake clientset of client-go, which gives no UIDs
// and evicts nothing by itself.
func TestRun_FakeClientset_PodsWithoutUIDGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, evicted := evictingClientset(t, newPod("web-1", withUID("")), newPod("web-2", withUID("")))
		d, err := runner.Executor{Client: runner.NewClient(client)}.Run(t.Context(), "node-1", drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, []any{drain.Drained, 2}, []any{d.Outcome, *evicted})
	})
}

// TestRun_FakeClientset_WatchOpensLate_EvictsOnce opens the watch of pods a minute after their list. A fake clientset
// does not send it what happened in between.
func TestRun_FakeClientset_WatchOpensLate_EvictsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, evicted := evictingClientset(t, newPod("web-1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		executor := runner.Executor{Client: runner.NewClient(lateWatch{Interface: client})}
		require.NoError(t, second(executor.Run(ctx, "node-1", drain.Policy{})))
		require.Equal(t, 1, *evicted)
	})
}

// lateWatch opens the watches of pods after a minute.
type lateWatch struct {
	kubernetes.Interface
	corev1client.CoreV1Interface
	corev1client.PodInterface
}

func (l lateWatch) CoreV1() corev1client.CoreV1Interface {
	l.CoreV1Interface = l.Interface.CoreV1()
	return l
}

func (l lateWatch) Pods(namespace string) corev1client.PodInterface {
	l.PodInterface = l.CoreV1Interface.Pods(namespace)
	return l
}

func (l lateWatch) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	time.Sleep(time.Minute)
	return l.PodInterface.Watch(ctx, o)
}

// slowEvictions answers evictions after a time.
type slowEvictions struct {
	runner.Client
	after time.Duration
}

func (s slowEvictions) Evict(ctx context.Context, e *policyv1.Eviction) error {
	select {
	case <-time.After(s.after):
		return s.Client.Evict(ctx, e)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestApply_ContextEnds_EvictionIsFinished ends the context after a second. An eviction that is cut off would use up
// its PodDisruptionBudget for two minutes.
func TestApply_ContextEnds_EvictionIsFinished(t *testing.T) {
	for after, want := range map[time.Duration]error{2 * time.Second: nil, time.Hour: context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := evictingClientset(t, newPod("a"))
			d := requests(drain.Evict, "a")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			results, err := runner.Executor{Client: slowEvictions{runner.NewClient(client), after}}.Apply(ctx, d)
			require.NoError(t, err)
			require.Len(t, results, 1)
			require.ErrorIs(t, results[0].Err, want)
			require.LessOrEqual(t, time.Since(began), 6*time.Second)
		})
	}
}

// silent is a clientset whose lists of PodDisruptionBudgets, or else their watches, get no answer.
type silent struct {
	kubernetes.Interface
	policyv1client.PolicyV1Interface
	policyv1client.PodDisruptionBudgetInterface

	lists bool
}

func (s silent) PolicyV1() policyv1client.PolicyV1Interface {
	s.PolicyV1Interface = s.Interface.PolicyV1()
	return s
}

func (s silent) PodDisruptionBudgets(namespace string) policyv1client.PodDisruptionBudgetInterface {
	s.PodDisruptionBudgetInterface = s.PolicyV1Interface.PodDisruptionBudgets(namespace)
	return s
}

func (s silent) List(ctx context.Context, o metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
	if s.lists {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.PodDisruptionBudgetInterface.List(ctx, o)
}

func (silent) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// hangsOnce is a Client whose second list of pods gets no answer.
type hangsOnce struct {
	runner.Client
	lists atomic.Int32
}

func (c *hangsOnce) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if _, pods := o.(*corev1.Pod); pods && c.lists.Add(1) == 2 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.Client.List(ctx, o, index, key)
}

func TestRun_ReadGetsNoAnswer_EndsWithTheCall(t *testing.T) {
	for name, of := range map[string]func(*world) runner.Client{
		"a list of a client without watches": func(w *world) runner.Client { return &hangsOnce{Client: runner.NewClient(w.client)} },
		"the first list of the budgets":      func(w *world) runner.Client { return runner.NewClient(silent{Interface: w.client, lists: true}) },
		"the first watch of the budgets":     func(w *world) runner.Client { return runner.NewClient(silent{Interface: w.client}) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				d, err := runner.Executor{Client: of(w), CallTimeout: 2 * time.Second}.Run(ctx, "node-1", drain.Policy{})
				require.NoError(t, err)
				require.Equal(t, drain.Drained, d.Outcome)
				require.Less(t, w.took(), time.Minute)
			}, fullNode(2)...)
		})
	}
}
