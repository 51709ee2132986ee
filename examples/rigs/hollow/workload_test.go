// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWorkload_Pods_AreSpreadAndReplaced(t *testing.T) {
	s := newHarness(t)
	s.workload.Replicas, s.workload.Budget = 3, true
	s.up("a", "b", "c")
	s.steps(12)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, s.runningOn())
	s.cordon("a")
	pods, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
	require.NoError(t, err)
	evict := func(pod corev1.Pod) error {
		return s.client.CoreV1().Pods("default").EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
	}
	require.NoError(t, evict(pods.Items[0]))
	others, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=b"})
	require.NoError(t, err)
	require.True(t, apierrors.IsTooManyRequests(evict(others.Items[0])), "the budget allows one disruption at a time")
	s.steps(8)
	require.Equal(t, 3, s.runningOn()["b"]+s.runningOn()["c"])
	require.Zero(t, s.runningOn()["a"])
}

func (s *harness) cordon(name string) {
	s.t.Helper()
	node := s.node(name)
	node.Spec.Unschedulable = true
	_, err := s.client.CoreV1().Nodes().Update(s.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}

func TestReplicas_ReplicaSet_IsScaledAndCounted(t *testing.T) {
	s := newHarness(t)
	s.workload.Replicas = 5
	s.up("a")
	s.steps(12)
	for _, want := range []int{5, 2, 4, 0} {
		s.workload.Replicas = want
		s.steps(8)
		require.Equal(t, want, s.runningOn()["a"])
		set, err := s.client.AppsV1().ReplicaSets("default").Get(t.Context(), "app", metav1.GetOptions{})
		require.NoError(t, err)
		require.EqualValues(t, want, set.Status.ReadyReplicas)
		require.Equal(t, set.Generation, set.Status.ObservedGeneration)
	}
}

func TestReplicas_NodeDeleted_PodsAreReplaced(t *testing.T) {
	s := newHarness(t)
	s.workload.Replicas = 2
	s.up("a", "b")
	s.steps(12)
	s.vms = s.vms[1:]
	require.NoError(t, s.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.steps(2)
	require.Equal(t, map[string]int{"b": 2}, s.runningOn())
}

func TestWorkload_Stop_DeletesAll(t *testing.T) {
	s := newHarness(t)
	s.workload.Replicas, s.workload.Budget = 3, true
	s.up("a")
	s.steps(12)
	require.NoError(t, s.workload.Stop(t.Context()))
	require.NoError(t, s.workload.Stop(t.Context()), "a repetition succeeds")
	for range 7 {
		s.clock.Step(1e9)
		require.NoError(t, s.nodes.Step(t.Context()))
	}
	require.Empty(t, s.runningOn())
	budgets, err := s.client.PolicyV1().PodDisruptionBudgets("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, budgets.Items)
}
