// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// budgetCause returns the message of the cause of a budget, or "".
func budgetCause(err error) string {
	cause, _ := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !apierrors.IsTooManyRequests(err) {
		return ""
	}
	return cause.Message
}

// status returns the status of the budget b.
func (w *world) status() policyv1.PodDisruptionBudgetStatus {
	w.t.Helper()
	return must(w.client.PolicyV1().PodDisruptionBudgets("ns").Get(w.t.Context(), "b", metav1.GetOptions{})).Status
}

// patchBudget changes the spec of the budget b.
func (w *world) patchBudget(patch string) {
	w.t.Helper()
	budgets := w.client.PolicyV1().PodDisruptionBudgets("ns")
	must(budgets.Patch(w.t.Context(), "b", types.MergePatchType, []byte(`{"spec":`+patch+`}`), metav1.PatchOptions{}))
}

func newReplicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name + "-uid")},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas},
	}
}

func TestEvict_PreconditionFails_BudgetIsCharged(t *testing.T) {
	a, b := runningPod("a", "n1", web), runningPod("b", "n1", web)
	w := newWorld(t, draintest.Options{}, a, b, minAvailable(intstr.FromInt32(1)))
	require.True(t, apierrors.IsConflict(w.evict("a", &metav1.Preconditions{UID: ptr.To(types.UID("other"))})))
	older := &metav1.Preconditions{ResourceVersion: ptr.To("1")}
	require.NotEmpty(t, budgetCause(w.evict("a", older)), "the first refusal used the budget up")
	require.WithinDuration(t, start.Add(2*time.Minute), w.Tick(), 0)
	require.Zero(t, w.after(2*time.Minute))
	require.True(t, apierrors.IsConflict(w.evict("a", older)), "the charge ended, and the budget is charged again")
}

func TestBudgetArithmetic(t *testing.T) {
	set, absent := newReplicaSet("rs", 10), newReplicaSet("absent", 0)
	number, percent := intstr.FromInt32, intstr.FromString
	atLeast := func(value intstr.IntOrString) policyv1.PodDisruptionBudgetSpec { return minAvailable(value).Spec }
	selector := atLeast(number(0)).Selector
	atMost := func(value intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &value, Selector: selector}
	}
	for _, tt := range []struct {
		name                       string
		spec                       policyv1.PodDisruptionBudgetSpec
		owner                      *appsv1.ReplicaSet
		ready, broken              int
		expected, desired, allowed int32
	}{
		{"a minimum counts the existing pods", atLeast(number(2)), set, 3, 0, 3, 2, 1},
		{"a percentage of the minimum is of the replicas and rounds up", atLeast(percent("55%")), set, 8, 2, 10, 6, 2},
		{"a maximum is of the replicas of the owner", atMost(number(3)), set, 8, 0, 10, 7, 1},
		{"a percentage of the maximum rounds up", atMost(percent("15%")), set, 10, 0, 10, 8, 2},
		{"a maximum beyond the replicas desires no pod", atMost(number(30)), set, 10, 0, 10, 0, 10},
		{"an owner that does not exist counts with its pods", atMost(number(1)), absent, 4, 0, 4, 3, 1},
		{"pods without owner do not count for a maximum", atMost(number(1)), nil, 4, 0, 0, 0, 0},
		{"pods without owner count for a minimum", atLeast(number(1)), nil, 4, 0, 4, 1, 3},
		{"fewer healthy than desired allow none", atLeast(number(3)), set, 1, 5, 6, 3, 0},
		{"a budget without numbers allows none", policyv1.PodDisruptionBudgetSpec{Selector: selector}, set, 3, 0, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			budget := minAvailable(number(0))
			budget.Spec = tt.spec
			w := newWorld(t, draintest.Options{}, set, budget)
			for i := range tt.ready + tt.broken {
				pod := runningPod(fmt.Sprint("p", i), "n1", web)
				if i >= tt.ready {
					pod.Status.Conditions[0].Status = corev1.ConditionFalse
				}
				if tt.owner != nil {
					pod = ownedBy(pod, tt.owner, "ReplicaSet")
				}
				require.NoError(t, w.Add(pod))
			}
			status := w.status()
			require.Equal(t, []int32{int32(tt.ready), tt.expected, tt.desired, tt.allowed}, //nolint:gosec // small
				[]int32{status.CurrentHealthy, status.ExpectedPods, status.DesiredHealthy, status.DisruptionsAllowed})
			require.EqualValues(t, 1, status.ObservedGeneration)
		})
	}
}

func TestBudget_ReplicaSet_UsesDeploymentScale(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "ns", UID: "d-uid"}}
	deployment.Spec.Replicas = ptr.To(int32(4))
	set := ownedBy(newReplicaSet("rs", 2), deployment, "Deployment")
	pod := func(name string) *corev1.Pod { return ownedBy(runningPod(name, "n1", web), set, "ReplicaSet") }
	w := newWorld(t, draintest.Options{}, deployment, set, minAvailable(intstr.FromString("50%")), pod("p"))
	require.EqualValues(t, 4, w.status().ExpectedPods)
	deployment.Spec.Replicas = ptr.To(int32(8))
	must(w.client.AppsV1().Deployments("ns").Update(t.Context(), deployment, metav1.UpdateOptions{}))
	require.EqualValues(t, 4, w.status().ExpectedPods, "owners are not watched")
	require.NoError(t, w.Add(pod("q")))
	require.EqualValues(t, 8, w.status().ExpectedPods, "pods are")
	w.patchBudget(`{"minAvailable":"25%"}`)
	require.Equal(t, []any{int32(2), int64(2)}, []any{w.status().DesiredHealthy, w.status().ObservedGeneration})
}

func TestBudget_Manual_StatusIsNotComputed(t *testing.T) {
	budget := minAvailable(intstr.FromInt32(1))
	budget.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ObservedGeneration: 1}
	a, b := runningPod("a", "n1", web), runningPod("b", "n1", web)
	w := newWorld(t, draintest.Options{ManualBudgets: true}, budget, a, b)
	require.NoError(t, w.evict("a", nil))
	require.Contains(t, budgetCause(w.evict("b", nil)), "The disruption budget b needs")
	w.patchBudget(`{"minAvailable":2}`)
	err := w.evict("b", nil)
	require.Contains(t, budgetCause(err), "still being processed")
	seconds, _ := apierrors.SuggestsClientDelay(err)
	require.Equal(t, 10, seconds)
	w.Tick()
	require.NotEmpty(t, budgetCause(w.evict("b", nil)))
}

func TestEvict_Refused_ErrorHasTheReason(t *testing.T) {
	condition := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	failed, other := condition(policyv1.SyncFailedReason, "no owner"), condition("R", "m")
	for want, status := range map[string]policyv1.PodDisruptionBudgetStatus{
		"needs 2 healthy pods and has 1 currently":    {DesiredHealthy: 2, CurrentHealthy: 1},
		"currently because it failed sync: no owner":  {DesiredHealthy: 2, CurrentHealthy: 1, Conditions: failed},
		"does not allow evicting pods currently (R):": {DesiredHealthy: 1, CurrentHealthy: 2, Conditions: other},
		"b does not allow evicting pods currently":    {DesiredHealthy: 1, CurrentHealthy: 2},
	} {
		budget := minAvailable(intstr.FromInt32(1))
		budget.Status, budget.Status.ObservedGeneration = status, 1
		w := newWorld(t, draintest.Options{ManualBudgets: true}, budget, runningPod("p", "n1", web))
		require.Contains(t, budgetCause(w.evict("p", nil)), want)
	}
}
