// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// freed is within what time a drain acts on a budget that is free. Without an event it would
// look again after twice that time.
const freed = 30 * time.Second

func TestDrain_BudgetFreed_EvictsAtOnce(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	web := []*corev1.Pod{w.pod(t, "web-0", w.a, app("web")), w.pod(t, "web-1", w.b, app("web")), w.pod(t, "web-2", w.b, app("web"), neverReady)}
	w.budget(t, "web", "web", 2, 3, 2)
	free := w.pod(t, "free", w.a)

	g := w.drains(t.Context(), w.client, lenient)
	e := g.waits(t, w, "pod/"+w.ns+"/web-0", drain.ReasonBudget)
	require.Contains(t, e.Message, "web")
	require.NotNil(t, e.Row)
	require.Len(t, e.Row.Budgets, 1)
	b := e.Row.Budgets[0]
	require.Equal(t, []any{"web", int32(0), int32(2), int32(2)}, []any{b.Name, b.Allowed, b.Healthy, b.Desired})
	w.goes(t, free)
	require.True(t, w.there(t, web[0]))
	require.Empty(t, w.asked(t, "web-0", http.StatusTooManyRequests), "no request that is known to be refused")

	w.open(t, "web-2")
	g.end(t)
	require.NoError(t, g.err)
	require.Equal(t, drain.Drained, g.plan.Outcome)
	var evicted []controlplane.Request
	w.until(t, "the log is written", func(context.Context) bool {
		evicted = w.asked(t, "web-0", http.StatusCreated)
		return len(evicted) == 1
	})
	late := evicted[0].Time.Sub(w.lastStatus(t, "web", evicted[0].Time))
	t.Logf("it was evicted %s after its budget was free", late.Round(100*time.Microsecond))
	require.Less(t, late, freed)
	require.True(t, w.there(t, web[1]))
}

// lastStatus returns when the controller last began to write the status of a budget
// before some time.
func (w *drainWorld) lastStatus(t *testing.T, budget string, before time.Time) (at time.Time) {
	t.Helper()
	requests, err := w.control.Requests()
	require.NoError(t, err)
	for _, r := range requests {
		if r.Namespace == w.ns && r.Name == budget && r.Verb == "update" && r.Subresource == "status" && r.Time.Before(before) {
			at = r.Time
		}
	}
	require.False(t, at.IsZero())
	return at
}

// TestDrain_BudgetNeverAllows_IsReported asserts that a budget that never allows an eviction is named, and that other pods are evicted.
func TestDrain_BudgetNeverAllows_IsReported(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	set := (&env.Env{Namespace: w.ns}).ReplicaSet("stuck", 1)
	set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: w.a}
	_, err := w.client.AppsV1().ReplicaSets(w.ns).Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	none := intstr.FromInt32(0)
	w.budgetOf(t, "stuck", 1, 1, policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "stuck"}},
	})
	free := w.pod(t, "free", w.a)
	pods, err := w.client.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=stuck"})
	require.NoError(t, err)
	require.Len(t, pods.Items, 1)
	stuck := &pods.Items[0]

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := w.drains(ctx, w.client, lenient)
	g.waits(t, w, "pod/"+w.ns+"/"+stuck.Name, drain.ReasonBudgetNever)
	w.goes(t, free)
	cancel()
	g.end(t)
	require.ErrorIs(t, g.err, context.Canceled)
	unfinished, ok := errors.AsType[*runner.UnfinishedError](g.err)
	require.True(t, ok)
	require.Equal(t, drain.Draining, unfinished.Decision.Outcome)
	r := row(t, g.plan, stuck.Name)
	require.Equal(t, drain.ReasonBudgetNever, r.Reason)
	require.Equal(t, "stuck", r.Budgets[0].Name)
	require.False(t, g.plan.Feasible())
	require.True(t, w.there(t, stuck))
	require.Empty(t, w.asked(t, stuck.Name, http.StatusTooManyRequests))
}

// TestDrain_SeveralBudgetsOfOnePod_AreNamed asserts that the answer 500 of the API server for a pod
// with two budgets is recognized if the budgets are known. If they are not, other pods are evicted.
func TestDrain_SeveralBudgetsOfOnePod_AreNamed(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	pod, free := w.pod(t, "web", w.a), w.pod(t, "free", w.a)
	w.budget(t, "one", "web", 0, 1, 1)
	w.budget(t, "two", "web", 0, 1, 1)
	err := w.client.CoreV1().Pods(w.ns).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}})
	reason, message, _ := drain.Result{Err: err}.Response()
	require.EqualValues(t, "Refused", reason, "the answer says it in prose only: %v", err)
	require.Contains(t, message, "more than one PodDisruptionBudget")

	blind := w.user(t, "blind", rule([]string{""}, []string{"nodes", "pods"}, "get", "list", "watch", "patch"), rule([]string{""}, []string{"pods/eviction"}, "create"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := w.drains(ctx, blind, lenient)
	g.waits(t, w, "pod/"+w.ns+"/web", "Refused")
	w.goes(t, free)
	cancel()
	require.ErrorIs(t, g.end(t).err, context.Canceled)
	require.Contains(t, g.plan.NotEvaluated, drain.SourceBudgets)
	require.True(t, w.there(t, pod))

	before := len(w.asked(t, "web", http.StatusInternalServerError))
	g = w.drains(t.Context(), w.client, lenient)
	e := g.waits(t, w, "pod/"+w.ns+"/web", drain.ReasonBudgets)
	require.Len(t, e.Row.Budgets, 2)
	require.Len(t, w.asked(t, "web", http.StatusInternalServerError), before, "who knows does not ask")
	require.NoError(t, w.client.PolicyV1().PodDisruptionBudgets(w.ns).Delete(t.Context(), "two", metav1.DeleteOptions{}))
	require.NoError(t, g.end(t).err)
	require.False(t, w.there(t, pod))
}

// TestEviction_EachCase_ServersAnswer asserts how Result.Response reads the answers of the API server to evictions.
func TestEviction_EachCase_ServersAnswer(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	pod := w.pod(t, "web", w.a)
	w.budget(t, "web", "web", 1, 1, 1)
	client := w.client.CoreV1().Pods(w.ns)
	evict := func(name string, uid string) (machinist.Reason, string) {
		e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
		if uid != "" {
			e.DeleteOptions = metav1.NewPreconditionDeleteOptions(uid)
		}
		reason, message, _ := drain.Result{Err: client.EvictV1(t.Context(), e)}.Response()
		return reason, message
	}
	reason, message := evict("web", string(pod.UID))
	require.Equal(t, drain.ReasonBudget, reason)
	require.Contains(t, message, "web")
	reason, _ = evict("missing", "")
	require.EqualValues(t, "Gone", reason)
	require.NoError(t, w.client.PolicyV1().PodDisruptionBudgets(w.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	w.until(t, "the budget is gone", func(context.Context) bool {
		reason, _ = evict("web", "another")
		return reason == "Refused"
	})
	require.True(t, w.there(t, pod), "another pod was meant")
	reason, _ = evict("web", string(pod.UID))
	require.Equal(t, drain.ReasonTerminating, reason)
	require.False(t, w.there(t, pod))
}
