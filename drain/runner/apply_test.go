// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

func TestApply_DryRun_ChecksRequestsAndChangesNothing(t *testing.T) {
	for _, cordon := range []nodeops.Cordon{{}, {Owner: "kured"}} {
		w := stillWorld(t, newNode("node-1"), newPod("a"), newPod("b"))
		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "pods/eviction", Name: "b"})
		before := w.observe(t)
		e := w.executor()
		e.DryRun = true
		results, err := e.Apply(t.Context(), drain.Decide(before, drain.Policy{Cordon: cordon}, now))
		require.NoError(t, err)
		require.Len(t, results, 2)
		require.NoError(t, results[0].Err)
		require.True(t, apierrors.IsForbidden(results[1].Err))
		require.Equal(t, before, w.observe(t))

		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "nodes", Verb: "patch"})
		_, err = e.Apply(t.Context(), drain.Decide(before, drain.Policy{Cordon: cordon}, now))
		require.True(t, apierrors.IsForbidden(err), err)
	}
}

func TestApply_GraceOfTheRow_IsInTheRequest(t *testing.T) {
	for _, action := range []drain.Action{drain.Evict, drain.Delete} {
		w := stillWorld(t, newNode("node-1"), newPod("a"))
		d := requests(action, "a")
		d.Rows[0].Grace = ptr.To(int64(7))
		require.NoError(t, second(w.executor().Apply(t.Context(), d)))
		require.Equal(t, int64(7), *w.observe(t).Pods.Items[0].DeletionGracePeriodSeconds)
	}
}

func TestApply_SuccessorOfAPod_IsNotEvicted(t *testing.T) {
	for _, action := range []drain.Action{drain.Evict, drain.Delete, drain.ForceDelete} {
		for _, where := range []string{"node-1", "node-2"} {
			w := stillWorld(t, newNode("node-1"), newPod("a", withUID("uid-successor"), onNode(where)))
			results, err := w.executor().Apply(t.Context(), requests(action, "a"))
			require.NoError(t, err)
			require.True(t, apierrors.IsConflict(results[0].Err), results[0].Err)
			successor, err := w.Client().CoreV1().Pods("shop").Get(t.Context(), "a", metav1.GetOptions{})
			require.NoError(t, err)
			require.Nil(t, successor.DeletionTimestamp, "%s on %s", action, where)
		}
	}
}

func TestApply_SuccessorOfTheNode_IsNotCordoned(t *testing.T) {
	w := stillWorld(t, newNode("node-1"), newPod("a"))
	d := drain.Decide(w.observe(t), drain.Policy{}, now)
	require.NoError(t, w.Add(newNode("node-1", func(n *corev1.Node) { n.UID = "uid-successor" })))
	results, err := w.executor().Apply(t.Context(), d)
	require.ErrorContains(t, err, "cordon node node-1: ")
	require.Empty(t, results)
	require.False(t, w.observe(t).Node.Spec.Unschedulable)
}

// TestApply_CordonIsRefused_DeletesAndDoesNotEvict has a Node that cannot be cordoned: an evicted
// pod might return to it. Forced deletions do not wait for the cordon, and a missing Node needs none.
func TestApply_CordonIsRefused_DeletesAndDoesNotEvict(t *testing.T) {
	for action, want := range map[drain.Action]int{drain.Evict: 0, drain.Delete: 2, drain.ForceDelete: 2} {
		w := stillWorld(t, newNode("node-1"), newPod("a"), newPod("b"))
		w.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes", Times: 1})
		d := requests(action, "a", "b")
		d.Cordon = &drain.SetCordon{Node: "node-1"}
		results, err := w.executor().Apply(t.Context(), d)
		require.True(t, apierrors.IsForbidden(err), err)
		require.ErrorContains(t, err, "cordon node node-1: ")
		require.Len(t, results, want, action)
		d.Cordon.Node = "node-2"
		results, err = w.executor().Apply(t.Context(), d)
		require.NoError(t, err)
		require.Len(t, results, 2)
	}
}

func TestApply_ContextEnds_ReturnsWhatWasDone(t *testing.T) {
	t.Run("in the middle", func(t *testing.T) {
		w := stillWorld(t, newNode("node-1"), newPod("a"), newPod("b"), newPod("c"))
		ctx, cancel := context.WithCancel(t.Context())
		sent := 0
		w.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if sent++; sent == 2 {
				cancel()
			}
			return false, nil, nil
		})
		results, err := w.executor().Apply(ctx, requests(drain.Evict, "a", "b", "c"))
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, results, 2)
		require.Equal(t, "b", results[1].Row.Name)
		results, err = w.executor().Apply(ctx, requests(drain.Evict, "c"))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, results)
		require.Len(t, w.client.Actions(), 2)
	})
	t.Run("with several requests in progress", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cluster := draintest.New(draintest.Options{Latency: func(draintest.Call) time.Duration { return time.Second }})
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			start := time.Now()
			results, err := runner.Executor{Client: runner.NewClient(cluster.Client()), Parallel: 3}.Apply(ctx, requests(drain.Delete, "a", "b", "c", "d", "e", "f", "g", "h"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Len(t, results, 6)
			require.Equal(t, 2*time.Second, time.Since(start), "it returns after the responses of the requests in progress")
		})
	})
}

func TestApply_Parallel_BoundsTheRequestsInProgress(t *testing.T) {
	var d drain.Decision
	for i := range 40 {
		row := drain.Row{Namespace: "shop", Name: fmt.Sprintf("p%02d", i), UID: "u", Action: drain.Delete}
		if i%3 == 0 {
			row.Action = drain.Wait
		}
		d.Rows = append(d.Rows, row)
	}
	for parallel, want := range map[int]time.Duration{0: 2 * time.Second, -1: 2 * time.Second, 1: 26 * time.Second, 4: 7 * time.Second, 1000: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var busy, most atomic.Int64
			cluster := draintest.New(draintest.Options{Latency: func(draintest.Call) time.Duration {
				most.Store(max(most.Load(), busy.Add(1)))
				time.AfterFunc(time.Second-1, func() { busy.Add(-1) })
				return time.Second
			}})
			start := time.Now()
			results, err := runner.Executor{Client: runner.NewClient(cluster.Client()), Parallel: parallel}.Apply(t.Context(), d)
			require.NoError(t, err)
			require.Equal(t, want, time.Since(start), parallel)
			require.True(t, parallel <= 0 && most.Load() == 16 || most.Load() == int64(min(parallel, 26)), most.Load())
			require.Len(t, results, 26)
			require.True(t, slices.IsSortedFunc(results, func(a, b drain.Result) int {
				return slices.Compare([]string{a.Row.Name}, []string{b.Row.Name})
			}), "results are in the order of the requests")
		})
	}
}

func TestApply_OneAtATime_InRequestOrder(t *testing.T) {
	d := requests(drain.Delete, "a", "b", "c", "d")
	d.Rows[0].Wave, d.Rows[1].Wave, d.Rows[2].Priority = 7, 3, 1
	w := stillWorld(t)
	results, err := w.executor().Apply(t.Context(), d)
	require.NoError(t, err)
	for i, want := range []string{"d", "c", "b", "a"} {
		require.Equal(t, want, w.client.Actions()[i].(clienttesting.DeleteAction).GetName())
		require.Equal(t, want, results[i].Row.Name)
	}
}

// TestApply_RequestHangs_GivenUpAfterItsTimeout asserts that a request that hangs is canceled and
// does not delay the others.
func TestApply_RequestHangs_GivenUpAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := apiServer(t, apierrors.NewNotFound(corev1.Resource("pods"), "a").ErrStatus)
		start := time.Now()
		results, err := runner.Executor{Client: runner.NewClient(client), Parallel: 1, CallTimeout: 5 * time.Second}.Apply(t.Context(), requests(drain.Delete, "a", "hangs", "z"))
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.ErrorIs(t, results[1].Err, context.DeadlineExceeded)
		require.True(t, apierrors.IsNotFound(results[2].Err))
		require.Equal(t, start.Add(5*time.Second).UTC(), results[1].At.UTC(), "a result has the time of its response")

		start = time.Now()
		require.NoError(t, second(runner.Executor{Client: runner.NewClient(client)}.Apply(t.Context(), requests(drain.Delete, "hangs"))))
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

// transport responds to the requests of a client.
type transport func(r *http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// apiServer responds to every request with the same status, and never to one for the object "hangs".
// It returns its client, and a function that returns the requests with their bodies.
func apiServer(t *testing.T, status metav1.Status) (kubernetes.Interface, func() []string) {
	t.Helper()
	var seen []string
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	text, err := json.Marshal(status)
	require.NoError(t, err)
	header := http.Header{"Content-Type": {"application/json"}}
	if status.Details != nil {
		header.Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: transport(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/hangs") {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		seen = append(seen, r.Method+" "+r.URL.Path+" "+string(body))
		return &http.Response{StatusCode: int(status.Code), Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
	})})
	require.NoError(t, err)
	return client, func() []string { return seen }
}

// TestApply_RefusedWithRetryAfter_RequestedOnce asserts that client-go does not repeat a refused
// request with Retry-After, which it otherwise does up to ten times. The drain has its own
// back-off.
func TestApply_RefusedWithRetryAfter_RequestedOnce(t *testing.T) {
	refusal := apierrors.NewTooManyRequests("no", 10).ErrStatus
	refusal.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "budget web needs 2"}}
	for action, want := range map[drain.Action]string{
		drain.Evict:       "POST /api/v1/namespaces/shop/pods/a/eviction ",
		drain.Delete:      "DELETE /api/v1/namespaces/shop/pods/a ",
		drain.ForceDelete: "DELETE /api/v1/namespaces/shop/pods/a ",
	} {
		client, seen := apiServer(t, refusal)
		results, err := runner.Executor{Client: runner.NewClient(client)}.Apply(t.Context(), requests(action, "a"))
		require.NoError(t, err)
		all := seen()
		require.Len(t, all, 1, action)
		require.Contains(t, all[0], want)
		require.Contains(t, all[0], "uid-a")
		reason, message, after := results[0].Response()
		require.Equal(t, []any{drain.ReasonBudget, "budget web needs 2", 10 * time.Second}, []any{reason, message, after})
	}
}

func TestApply_Eviction_IsOfPolicyV1(t *testing.T) {
	client, seen := apiServer(t, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	d := requests(drain.Evict, "a")
	d.Rows[0].Grace = ptr.To(int64(5))
	results, err := runner.Executor{Client: runner.NewClient(client)}.Apply(t.Context(), d)
	require.NoError(t, err)
	require.NoError(t, results[0].Err)
	all := seen()
	require.Len(t, all, 1, "without a discovery request")
	var sent policyv1.Eviction
	require.NoError(t, json.Unmarshal([]byte(all[0][len("POST /api/v1/namespaces/shop/pods/a/eviction "):]), &sent))
	require.Equal(t, []any{"policy/v1", "Eviction", int64(5), types.UID("uid-a")},
		[]any{sent.APIVersion, sent.Kind, *sent.DeleteOptions.GracePeriodSeconds, *sent.DeleteOptions.Preconditions.UID})
}

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
