// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ready holds when so many pods of an app are ready.
func ready(s *env.Env, app string, want int32) env.Condition {
	return func(ctx context.Context) (string, error) {
		set, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil || set.Status.ReadyReplicas != want {
			return fmt.Sprintf("not %d pods are ready", want), err
		}
		return "", nil
	}
}

// counted holds when a budget counts so many pods.
func counted(s *env.Env, app string, want int32) env.Condition {
	return func(ctx context.Context) (string, error) {
		b, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil || b.Status.CurrentHealthy != want || b.Status.ObservedGeneration != b.Generation {
			return fmt.Sprintf("the budget does not count %d pods", want), err
		}
		return "", nil
	}
}

// available holds when a deployment has so many machines available, and so many run
// beside one.
func available(s *env.Env, name string, want int, beside string) env.Condition {
	return func(ctx context.Context) (string, error) {
		api := s.Machines.MachineV1alpha1()
		d, err1 := api.MachineDeployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		list, err2 := api.Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err := errors.Join(err1, err2); err != nil {
			return "nothing is known", err
		}
		run := 0
		for _, m := range list.Items {
			if m.Name != beside && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
				run++
			}
		}
		if n := int(d.Status.AvailableReplicas); n != want || run != want {
			return fmt.Sprintf("%d of %d machines are available, %d run beside %s", n, want, run, beside), nil
		}
		return "", nil
	}
}

// podsOn returns the pods on a Node, in the namespace of the environment.
func podsOn(t *testing.T, s *env.Env, node string) []corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(t, err)
	return pods.Items
}

// evictions counts the evictions that the manager has asked for and that were
// answered in one way.
func evictions(ctx context.Context, t *testing.T, s *env.Env, code int) (n int) {
	t.Helper()
	requests, err := s.Requests(ctx)
	require.NoError(t, err)
	for _, r := range requests {
		if r.Verb == "create" && r.Resource == "pods" && r.Subresource == "eviction" && r.Code == code {
			n++
		}
	}
	return n
}

// podDeletions counts the deletions of pods that the manager has asked for.
func podDeletions(t *testing.T, s *env.Env) (n int) {
	t.Helper()
	requests, err := s.Requests(t.Context())
	require.NoError(t, err)
	for _, r := range requests {
		if r.Resource == "pods" && r.Subresource == "" && (r.Verb == "delete" || r.Verb == "deletecollection") {
			n++
		}
	}
	return n
}

// drainUnderBudget drains a Node whose pods a disruption budget keeps, until it allows more.
func drainUnderBudget(t *testing.T, by composition) {
	s := cluster.Set(t, "budget", by.options())
	s.StartManager(t, "manager")
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	deploy(t, s, s.Deployment("workers", "small", 2, 1, 1))
	_, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(ctx, s.ReplicaSet("app", 4), metav1.CreateOptions{})
	require.NoError(t, err)
	budgets := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace)
	_, err = budgets.Create(ctx, s.Budget("app", 4), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pods are ready", ready(s, "app", 4))
	s.Wait(t, patience, "the budget knows them", counted(s, "app", 4))
	victim := machines(t, s)[0]
	if len(podsOn(t, s, s.NodeName(victim.Name))) == 0 { // then all are on the other
		victim = machines(t, s)[1]
	}
	node := victim.Labels[v1alpha1.NodeLabelKey]
	before := podsOn(t, s, node)
	require.NotEmpty(t, before)

	require.NoError(t, api.Delete(ctx, victim.Name, metav1.DeleteOptions{}))
	s.Wait(t, patience, "the machine says what it waits for", func(ctx context.Context) (string, error) {
		m, err := api.Get(ctx, victim.Name, metav1.GetOptions{})
		if err != nil {
			return "the machine", err
		}
		for _, p := range before {
			if strings.Contains(m.Status.LastOperation.Description, p.Name+": BudgetNeverAllows: ") {
				return "", nil
			}
		}
		return "the machine says " + m.Status.LastOperation.Description, nil
	})
	s.Wait(t, patience, "the machine is replaced meanwhile", available(s, "workers", 2, victim.Name))
	after := podsOn(t, s, node)
	require.Len(t, after, len(before))
	for i, p := range after {
		require.Equal(t, before[i].UID, p.UID)
		require.Nil(t, p.DeletionTimestamp)
	}
	require.Len(t, s.Cloud.Snapshot().Of(victim.Name).VMs, 1)
	m, err := api.Get(ctx, victim.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, v1alpha1.MachineTerminating, m.Status.CurrentStatus.Phase)
	require.Zero(t, evictions(ctx, t, s, http.StatusCreated))
	require.Zero(t, evictions(ctx, t, s, http.StatusTooManyRequests), "no request that is known to be refused")

	_, err = budgets.Patch(ctx, "app", mergePatch, []byte(`{"spec":{"minAvailable":3}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the machine is gone", gone(s, victim.Name))
	require.Equal(t, len(before), evictions(ctx, t, s, http.StatusCreated))
	s.Wait(t, patience, "the pods are ready elsewhere", ready(s, "app", 4))
	require.Zero(t, podDeletions(t, s), "pods are evicted, not deleted")
	require.NoError(t, budgets.Delete(ctx, "app", metav1.DeleteOptions{}))
	removeAll(t, s)
}
