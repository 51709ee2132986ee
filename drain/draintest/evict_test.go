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
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // evictions are not wrapped
	if !ok || !apierrors.IsTooManyRequests(err) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == policyv1.DisruptionBudgetCause {
			return cause.Message
		}
	}
	return ""
}

func unready(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	return pod
}

func TestEvict_PreconditionFails_BudgetIsCharged(t *testing.T) {
	c, client, clock := newCluster(t)
	require.NoError(t, c.Add(runningPod("a", "n1", web), runningPod("b", "n1", web), minAvailable("web", intstr.FromInt32(1), web)))
	pods := client.CoreV1().Pods("ns")
	ev := eviction("a")
	ev.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("other"))}}
	require.True(t, apierrors.IsConflict(pods.EvictV1(t.Context(), ev)))
	ev.DeleteOptions.Preconditions = &metav1.Preconditions{ResourceVersion: ptr.To("1")}
	require.NotEmpty(t, budgetCause(pods.EvictV1(t.Context(), ev)), "the first refusal used the budget up")

	due := c.Tick()
	require.True(t, due.Equal(start.Add(2*time.Minute)), "%v", due)
	clock.SetTime(due)
	require.True(t, c.Tick().IsZero())
	require.True(t, apierrors.IsConflict(pods.EvictV1(t.Context(), ev)), "the charge ended, and the budget is charged again")
}

func TestBudgetArithmetic(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs", Namespace: "ns", UID: "rs-uid"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(10))}}
	absent := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "absent", UID: "absent-uid"}}
	maxUnavailable := func(value intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &value, Selector: &metav1.LabelSelector{MatchLabels: web}}
	}
	atLeast := func(value intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return minAvailable("", value, web).Spec
	}
	cases := []struct {
		name                       string
		spec                       policyv1.PodDisruptionBudgetSpec
		owner                      *appsv1.ReplicaSet
		ready, broken              int
		expected, desired, allowed int32
	}{
		{"a minimum counts the existing pods", atLeast(intstr.FromInt32(2)), set, 3, 0, 3, 2, 1},
		{"a minimum percentage is of the replicas of the owner", atLeast(intstr.FromString("50%")), set, 8, 2, 10, 5, 3},
		{"a percentage of the minimum rounds up", atLeast(intstr.FromString("55%")), set, 8, 2, 10, 6, 2},
		{"a maximum is of the replicas of the owner", maxUnavailable(intstr.FromInt32(3)), set, 8, 0, 10, 7, 1},
		{"a percentage of the maximum rounds up", maxUnavailable(intstr.FromString("15%")), set, 10, 0, 10, 8, 2},
		{"a maximum beyond the replicas desires no pod", maxUnavailable(intstr.FromInt32(30)), set, 10, 0, 10, 0, 10},
		{"an owner that does not exist counts with its pods", maxUnavailable(intstr.FromInt32(1)), absent, 4, 0, 4, 3, 1},
		{"pods without owner do not count for a maximum", maxUnavailable(intstr.FromInt32(1)), nil, 4, 0, 0, 0, 0},
		{"pods without owner count for a minimum", atLeast(intstr.FromInt32(1)), nil, 4, 0, 4, 1, 3},
		{"fewer healthy than desired allow none", atLeast(intstr.FromInt32(3)), set, 1, 5, 6, 3, 0},
		{"a budget without numbers allows none", policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: web}}, set, 3, 0, 0, 0, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c, client, _ := newCluster(t)
			pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"}, Spec: tc.spec}
			require.NoError(t, c.Add(set, pdb))
			for i := range tc.ready + tc.broken {
				pod := runningPod(fmt.Sprint("p", i), "n1", web)
				if i >= tc.ready {
					pod = unready(pod)
				}
				if tc.owner != nil {
					pod = ownedBy(pod, tc.owner, "ReplicaSet")
				}
				require.NoError(t, c.Add(pod))
			}
			got, err := client.PolicyV1().PodDisruptionBudgets("ns").Get(t.Context(), "b", metav1.GetOptions{})
			require.NoError(t, err)
			require.EqualValues(t, tc.ready, got.Status.CurrentHealthy)
			require.Equal(t, tc.expected, got.Status.ExpectedPods)
			require.Equal(t, tc.desired, got.Status.DesiredHealthy)
			require.Equal(t, tc.allowed, got.Status.DisruptionsAllowed)
			require.Equal(t, got.Generation, got.Status.ObservedGeneration)
		})
	}
}

func TestBudget_ReplicaSet_UsesDeploymentScale(t *testing.T) {
	c, client, _ := newCluster(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "ns", UID: "d-uid"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(4))}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs", Namespace: "ns", UID: "rs-uid"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(2))}}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d-uid", Controller: ptr.To(true)}}
	pdb := minAvailable("b", intstr.FromString("50%"), web)
	require.NoError(t, c.Add(deployment, set, pdb, ownedBy(runningPod("p", "n1", web), set, "ReplicaSet")))
	status := func() policyv1.PodDisruptionBudgetStatus {
		got, err := client.PolicyV1().PodDisruptionBudgets("ns").Get(t.Context(), "b", metav1.GetOptions{})
		require.NoError(t, err)
		return got.Status
	}
	require.EqualValues(t, 4, status().ExpectedPods)
	_, err := client.AppsV1().Deployments("ns").Patch(t.Context(), "d", types.MergePatchType, []byte(`{"spec":{"replicas":8}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 4, status().ExpectedPods, "owners are not watched")
	require.NoError(t, c.Add(ownedBy(runningPod("q", "n1", web), set, "ReplicaSet")))
	require.EqualValues(t, 8, status().ExpectedPods, "pods are")
	_, err = client.PolicyV1().PodDisruptionBudgets("ns").Patch(t.Context(), "b", types.MergePatchType, []byte(`{"spec":{"minAvailable":"25%"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, status().DesiredHealthy)
	require.EqualValues(t, 2, status().ObservedGeneration)
}

func TestBudget_Manual_StatusIsNotComputed(t *testing.T) {
	c, client, _ := newCluster(t, func(o *draintest.Options) { o.ManualBudgets = true })
	pdb := minAvailable("b", intstr.FromInt32(1), web)
	pdb.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ObservedGeneration: 1}
	require.NoError(t, c.Add(pdb, runningPod("a", "n1", web), runningPod("b", "n1", web)))
	pods := client.CoreV1().Pods("ns")
	require.NoError(t, pods.EvictV1(t.Context(), eviction("a")))
	require.Contains(t, budgetCause(pods.EvictV1(t.Context(), eviction("b"))), "The disruption budget b needs")
	_, err := client.PolicyV1().PodDisruptionBudgets("ns").Patch(t.Context(), "b", types.MergePatchType, []byte(`{"spec":{"minAvailable":2}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	err = pods.EvictV1(t.Context(), eviction("b"))
	require.Contains(t, budgetCause(err), "still being processed")
	seconds, _ := apierrors.SuggestsClientDelay(err)
	require.Equal(t, 10, seconds)
	c.Tick()
	require.NotEmpty(t, budgetCause(pods.EvictV1(t.Context(), eviction("b"))))
}

func TestEvict_Refused_ErrorHasTheReason(t *testing.T) {
	condition := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	cases := map[string]policyv1.PodDisruptionBudgetStatus{
		"needs 2 healthy pods and has 1 currently":    {DesiredHealthy: 2, CurrentHealthy: 1},
		"currently because it failed sync: no owner":  {DesiredHealthy: 2, CurrentHealthy: 1, Conditions: condition(policyv1.SyncFailedReason, "no owner")},
		"does not allow evicting pods currently (R):": {DesiredHealthy: 1, CurrentHealthy: 2, Conditions: condition("R", "m")},
		"b does not allow evicting pods currently":    {DesiredHealthy: 1, CurrentHealthy: 2},
	}
	for want, status := range cases {
		t.Run(want, func(t *testing.T) {
			c, client, _ := newCluster(t, func(o *draintest.Options) { o.ManualBudgets = true })
			pdb := minAvailable("b", intstr.FromInt32(1), web)
			pdb.Status, pdb.Status.ObservedGeneration = status, 1
			require.NoError(t, c.Add(pdb, runningPod("p", "n1", web)))
			require.Contains(t, budgetCause(client.CoreV1().Pods("ns").EvictV1(t.Context(), eviction("p"))), want)
		})
	}
}
