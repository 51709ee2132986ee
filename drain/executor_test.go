// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// execCluster returns a cluster with these objects on a fake clock.
func execCluster(t testing.TB, objects ...runtime.Object) *draintest.Cluster {
	t.Helper()
	cluster := draintest.New(draintest.Options{Clock: clocktesting.NewFakeClock(now), Seed: 1})
	require.NoError(t, cluster.Add(objects...))
	return cluster
}

// execSerial carries plans out one request after the other, at the time of a cluster.
func execSerial(cluster *draintest.Cluster, client kubernetes.Interface) runner.Executor {
	return runner.Executor{Client: client, Clock: cluster.Clock(), Parallel: 1}
}

// execObserve looks at a cluster, past all faults of its clients.
func execObserve(t testing.TB, cluster *draintest.Cluster) drain.Observation {
	t.Helper()
	in, err := runner.Observe(t.Context(), runner.Live{Client: cluster.Client()}, "node-1", drain.Policy{}, drain.State{})
	require.NoError(t, err)
	return in
}

// execBudget is a budget that keeps so many pods of an app.
func execBudget(name, app string, minimum int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(minimum)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
}

func execApp(app string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = app } }

// execAsked says in words what a clientset was asked.
func execAsked(client interface{ Actions() []clienttesting.Action }) []string {
	var asked []string
	for _, a := range client.Actions() {
		s := a.GetVerb() + " " + a.GetResource().Resource
		if a.GetSubresource() != "" {
			s += "/" + a.GetSubresource()
		}
		asked = append(asked, s)
	}
	return asked
}

// execPlan is a plan that asks the same of these pods.
func execPlan(verdict drain.Verdict, names ...string) drain.Decision {
	plan := drain.Decision{Node: "node-1"}
	for _, name := range names {
		plan.Rows = append(plan.Rows, drain.Row{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Verdict: verdict})
	}
	return plan
}

func TestCarryFencesThenEvicts(t *testing.T) {
	node := openNode()
	node.Spec.Taints = []corev1.Taint{{Key: "of-somebody", Effect: corev1.TaintEffectNoSchedule}}
	cluster := execCluster(t, node, newPod("a"), newPod("b"), newPod("agent", ownedBy("DaemonSet")), podsDaemonSet("uid-DaemonSet"))
	client := cluster.Clientset()
	results, err := execSerial(cluster, client).Apply(t.Context(), drain.Decide(execObserve(t, cluster), drain.Policy{}, now))
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Equal(t, []string{"patch nodes", "create pods/eviction", "create pods/eviction"}, execAsked(client), "one request for each")

	in := execObserve(t, cluster)
	require.True(t, in.Node.Spec.Unschedulable)
	require.Equal(t, node.Spec.Taints, in.Node.Spec.Taints, "the rest of the Node is untouched")
	for _, pod := range in.Pods.Items {
		if pod.Name != "agent" {
			require.Equal(t, now.Add(30*time.Second), pod.DeletionTimestamp.UTC(), "a pod keeps its own grace")
		}
	}
}

func TestCarryAsksForTheGraceOfTheRow(t *testing.T) {
	for _, verdict := range []drain.Verdict{drain.Evict, drain.Delete} {
		cluster := execCluster(t, newNode(), newPod("a"))
		plan := execPlan(verdict, "a")
		plan.Rows[0].Grace = new(int64(7))
		_, err := execSerial(cluster, cluster.Client()).Apply(t.Context(), plan)
		require.NoError(t, err)
		require.Equal(t, int64(7), *execObserve(t, cluster).Pods.Items[0].DeletionGracePeriodSeconds)
	}
}

func TestDD11ASuccessorOfTheSameNameIsSpared(t *testing.T) {
	for _, verdict := range []drain.Verdict{drain.Evict, drain.Delete, drain.ForceDelete} {
		for _, where := range []string{"node-1", "node-2"} {
			t.Run(fmt.Sprint(verdict, " on ", where), func(t *testing.T) {
				cluster := execCluster(t, newNode(), newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor"; p.Spec.NodeName = where }))
				results, err := execSerial(cluster, cluster.Client()).Apply(t.Context(), execPlan(verdict, "a"))
				require.NoError(t, err)
				require.True(t, apierrors.IsConflict(results[0].Err), results[0].Err)
				successor, err := cluster.Client().CoreV1().Pods("shop").Get(t.Context(), "a", metav1.GetOptions{})
				require.NoError(t, err)
				require.Nil(t, successor.DeletionTimestamp)
			})
		}
	}
}

func TestDD11ACacheThatLagsDoesNotAskAgainAtOnce(t *testing.T) {
	cluster := execCluster(t, newNode(), newPod("a"))
	in := execObserve(t, cluster)
	require.NoError(t, cluster.Add(newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor" })))
	client := cluster.Clientset()
	executor := execSerial(cluster, client)
	state, plan, err := executor.Pass(t.Context(), drain.State{}, in, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Equal(t, drain.ReasonRefused, plan.Rows[0].Reason)
	_, _, err = executor.Pass(t.Context(), state, in, drain.Policy{}, "node-1")
	require.NoError(t, err)
	require.Len(t, client.Actions(), 1)
}

func TestASuccessorOfTheNodeIsNotFenced(t *testing.T) {
	cluster := execCluster(t, openNode(), newPod("a"))
	plan := drain.Decide(execObserve(t, cluster), drain.Policy{}, now)
	successor := openNode()
	successor.UID = "uid-successor"
	require.NoError(t, cluster.Add(successor))
	results, err := execSerial(cluster, cluster.Client()).Apply(t.Context(), plan)
	require.ErrorAs(t, err, new(*runner.FenceError))
	require.Empty(t, results)
	require.False(t, execObserve(t, cluster).Node.Spec.Unschedulable)
}

func TestANodeThatIsGoneNeedsNoFence(t *testing.T) {
	cluster := execCluster(t, newPod("a"))
	in := observed(newPod("a"))
	in.Node = openNode()
	results, err := execSerial(cluster, cluster.Client()).Apply(t.Context(), drain.Decide(in, drain.Policy{}, now))
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.NoError(t, results[0].Err)
}

func TestWithoutFence(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict drain.Verdict
		want    int
	}{
		{"no pod is evicted, since it might come back", drain.Evict, 0},
		{"pods are deleted", drain.Delete, 2},
		{"pods are deleted by force", drain.ForceDelete, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster := execCluster(t, openNode(), newPod("a"), newPod("b"))
			cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
			plan := execPlan(tt.verdict, "a", "b")
			plan.Fence = &drain.SetFence{Node: "node-1"}
			results, err := execSerial(cluster, cluster.Client()).Apply(t.Context(), plan)
			require.True(t, apierrors.IsForbidden(err), err)
			fence, ok := errors.AsType[*runner.FenceError](err)
			require.True(t, ok)
			require.Equal(t, "node-1", fence.Node)
			require.ErrorContains(t, err, "fence node node-1: ")
			require.Len(t, results, tt.want)
		})
	}
}

func TestCarryEndsWithItsContext(t *testing.T) {
	t.Run("before anything", func(t *testing.T) {
		cluster := execCluster(t, openNode(), newPod("a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client := cluster.Clientset()
		results, err := execSerial(cluster, client).Apply(ctx, drain.Decide(execObserve(t, cluster), drain.Policy{}, now))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, results)
		require.Empty(t, client.Actions())
	})
	t.Run("in the middle, and says what was done", func(t *testing.T) {
		cluster := execCluster(t, newNode(), newPod("a"), newPod("b"), newPod("c"))
		ctx, cancel := context.WithCancel(t.Context())
		client, asked := cluster.Clientset(), 0
		client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if asked++; asked == 2 {
				cancel()
			}
			return false, nil, nil
		})
		results, err := execSerial(cluster, client).Apply(ctx, drain.Decide(execObserve(t, cluster), drain.Policy{}, now))
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, results, 2)
		require.Equal(t, "b", results[1].Row.Name)
		require.Len(t, client.Actions(), 2)
	})
	t.Run("with several requests under way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cluster := draintest.New(draintest.Options{Latency: func(draintest.Call) time.Duration { return time.Second }})
			names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			start := time.Now()
			results, err := runner.Executor{Client: cluster.Client(), Parallel: 3}.Apply(ctx, execPlan(drain.Delete, names...))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Len(t, results, 6)
			require.Equal(t, 2*time.Second, time.Since(start), "it returns when those under way have been answered")
		})
	})
}

func TestB3ParallelRequests(t *testing.T) {
	plan := execPlan(drain.Delete)
	for i := range 40 {
		row := drain.Row{Namespace: "shop", Name: fmt.Sprintf("p%02d", i), UID: "u", Verdict: drain.Delete}
		if i%3 == 0 {
			row.Verdict = drain.Wait
		}
		plan.Rows = append(plan.Rows, row)
	}
	for _, tt := range []struct {
		name           string
		parallel, most int
		want           time.Duration
	}{
		{"the default is bounded", 0, 16, 2 * time.Second},
		{"less than nothing is the default", -1, 16, 2 * time.Second},
		{"one is one after the other", 1, 1, 26 * time.Second},
		{"four", 4, 4, 7 * time.Second},
		{"more than there are rows", 1000, 26, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var busy, most atomic.Int64
				cluster := draintest.New(draintest.Options{Latency: func(draintest.Call) time.Duration {
					most.Store(max(most.Load(), busy.Add(1)))
					time.AfterFunc(time.Second-1, func() { busy.Add(-1) })
					return time.Second
				}})
				start := time.Now()
				results, err := runner.Executor{Client: cluster.Client(), Parallel: tt.parallel}.Apply(t.Context(), plan)
				require.NoError(t, err)
				require.Equal(t, tt.want, time.Since(start))
				require.LessOrEqual(t, most.Load(), int64(tt.most))
				require.Len(t, results, 26)
				require.True(t, slices.IsSortedFunc(results, func(a, b drain.Result) int {
					return slices.Compare([]string{a.Row.Name}, []string{b.Row.Name})
				}), "results are in the order of the rows")
			})
		})
	}
}

// The order of requests is that of RequestOrder, whatever the order of the rows.
func TestOneAfterTheOtherMeansInOrder(t *testing.T) {
	plan := execPlan(drain.Delete, "a", "b", "c", "d")
	plan.Rows[0].Wave, plan.Rows[1].Wave = 7, 3
	want := slices.Clone(plan.Rows)
	slices.SortStableFunc(want, drain.RequestOrder)
	require.Equal(t, "c", want[0].Name, "waves come first")
	cluster := execCluster(t)
	client := cluster.Clientset()
	results, err := execSerial(cluster, client).Apply(t.Context(), plan)
	require.NoError(t, err)
	for i, action := range client.Actions() {
		require.Equal(t, want[i].Name, action.(clienttesting.DeleteAction).GetName())
		require.Equal(t, plan.Rows[i], results[i].Row)
	}
}

// A request that hangs is given up, and the others are not held up by it.
func TestB3EachCallHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &hangingPods{Interface: draintest.New(draintest.Options{}).Client(), name: "b"}
		start := time.Now()
		results, err := runner.Executor{Client: client, Parallel: 1, CallTimeout: 5 * time.Second}.
			Apply(t.Context(), execPlan(drain.Delete, "a", "b", "c"))
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.ErrorIs(t, results[1].Err, context.DeadlineExceeded)
		require.True(t, apierrors.IsNotFound(results[2].Err))
		require.Equal(t, start.Add(5*time.Second).UTC(), results[1].At.UTC(), "a result is as old as its answer")

		start = time.Now()
		_, err = runner.Executor{Client: client}.Apply(t.Context(), execPlan(drain.Delete, "b"))
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

// hangingPods is a client whose deletion of one pod does not return before its context ends.
type hangingPods struct {
	kubernetes.Interface

	name string
}

func (c *hangingPods) CoreV1() typedcorev1.CoreV1Interface {
	return hangingCore{c.Interface.CoreV1(), c.name}
}

type hangingCore struct {
	typedcorev1.CoreV1Interface

	name string
}

func (c hangingCore) Pods(namespace string) typedcorev1.PodInterface {
	return hangingPod{c.CoreV1Interface.Pods(namespace), c.name}
}

type hangingPod struct {
	typedcorev1.PodInterface

	name string
}

func (c hangingPod) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if name == c.name {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.PodInterface.Delete(ctx, name, o)
}

func TestResultsHaveTheTimeOfTheirAnswer(t *testing.T) {
	cluster := execCluster(t, newNode(), newPod("a"))
	results, err := runner.Executor{Client: cluster.Client(), Clock: cluster.Clock()}.Apply(t.Context(), execPlan(drain.Evict, "a"))
	require.NoError(t, err)
	require.Equal(t, now, results[0].At)
}

func TestCarryWithoutClient(t *testing.T) {
	results, err := runner.Executor{}.Apply(t.Context(), execPlan(drain.Evict, "a"))
	require.ErrorIs(t, err, runner.ErrUnusable)
	require.Empty(t, results)
}

func TestCarryDoesNothingForAnEmptyPlan(t *testing.T) {
	cluster := execCluster(t)
	client := cluster.Clientset()
	for _, plan := range []drain.Decision{{}, drain.Decide(drain.Observation{}, drain.Policy{}, now)} {
		results, err := execSerial(cluster, client).Apply(t.Context(), plan)
		require.NoError(t, err)
		require.Empty(t, results)
	}
	require.Empty(t, client.Actions())
}

func TestDD60OneRefusalDoesNotStopTheOthers(t *testing.T) {
	cluster := execCluster(t, newNode(), execBudget("b1", "two", 1), execBudget("b2", "two", 1), execBudget("b3", "one", 1),
		newPod("a", execApp("two")), newPod("b", execApp("one")), newPod("c", execApp("none")))
	_, plan, err := execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, observed(
		newPod("a", execApp("two")), newPod("b", execApp("one")), newPod("c", execApp("none"))), drain.Policy{}, "node-1")
	require.NoError(t, err)
	var got []machinist.Reason
	for _, row := range plan.Rows {
		got = append(got, row.Reason)
	}
	require.Equal(t, []machinist.Reason{drain.ReasonRefused, drain.ReasonBudget, drain.ReasonTerminating}, got)
}

// apiServer answers every request with the same status, and counts.
func apiServer(t *testing.T, code int, header http.Header, body any) (kubernetes.Interface, *apiRequests) {
	t.Helper()
	requests := &apiRequests{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.add(r)
		for key := range header {
			w.Header().Set(key, header.Get(key))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	return client, requests
}

type apiRequests struct {
	mu   sync.Mutex
	seen []string
	body []string
}

func (r *apiRequests) add(request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, request.Method+" "+request.URL.Path)
	r.body = append(r.body, string(body))
}

func (r *apiRequests) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// The client of an API server repeats by itself what was refused with a time to come
// back, up to ten times. A drain does not want that: it has other pods, and its own times.
func TestD13ARefusalIsAskedOnce(t *testing.T) {
	refusal := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonTooManyRequests, Code: http.StatusTooManyRequests, Message: "no",
		Details: &metav1.StatusDetails{RetryAfterSeconds: 10, Causes: []metav1.StatusCause{
			{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 2 healthy pods and has 2 currently"},
		}},
	}
	for verdict, want := range map[drain.Verdict]string{
		drain.Evict:       "POST /api/v1/namespaces/shop/pods/a/eviction",
		drain.Delete:      "DELETE /api/v1/namespaces/shop/pods/a",
		drain.ForceDelete: "DELETE /api/v1/namespaces/shop/pods/a",
	} {
		t.Run(string(verdict), func(t *testing.T) {
			client, requests := apiServer(t, http.StatusTooManyRequests, http.Header{"Retry-After": {"10"}}, refusal)
			results, err := runner.Executor{Client: client, Clock: clock.RealClock{}}.Apply(t.Context(), execPlan(verdict, "a"))
			require.NoError(t, err)
			require.Equal(t, []string{want}, requests.all())
			require.Contains(t, requests.body[0], "uid-a")
			answer := answerTo(results[0].Err)
			require.Equal(t, drain.ReasonBudget, answer.Reason)
			require.Contains(t, answer.Message, "budget web")
			require.Equal(t, now.Add(10*time.Second), answer.Until)
		})
	}
}

func TestDD20EvictionsAreOfTheStableVersion(t *testing.T) {
	client, requests := apiServer(t, http.StatusCreated, nil, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
	})
	plan := execPlan(drain.Evict, "a")
	plan.Rows[0].Grace = new(int64(5))
	results, err := runner.Executor{Client: client}.Apply(t.Context(), plan)
	require.NoError(t, err)
	require.NoError(t, results[0].Err)
	require.Len(t, requests.all(), 1, "and nothing is discovered first")
	var sent policyv1.Eviction
	require.NoError(t, json.Unmarshal([]byte(requests.body[0]), &sent))
	require.Equal(t, "policy/v1", sent.APIVersion)
	require.Equal(t, "Eviction", sent.Kind)
	require.Equal(t, int64(5), *sent.DeleteOptions.GracePeriodSeconds)
	require.Equal(t, types.UID("uid-a"), *sent.DeleteOptions.Preconditions.UID)
}
