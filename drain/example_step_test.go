// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// webPod returns a running pod of a ReplicaSet.
func webPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(30))},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// webBudget returns a PodDisruptionBudget that keeps one pod available.
func webBudget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}

// A caller with an own loop keeps the State between steps. The PodDisruptionBudget allows the second
// eviction when a pod on another Node has replaced the first one. A controller keeps the State in
// memory, and its informers start the next step.
func ExampleStep() {
	ctx := context.Background()
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cluster := draintest.New(draintest.Options{Clock: clock})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	if err := cluster.Add(node, webPod("web-1", "node-1"), webPod("web-2", "node-1"), webBudget()); err != nil {
		fmt.Println(err)
		return
	}

	policy := drain.Policy{Ladder: drain.Ladder{{After: 2 * time.Hour, Action: drain.IgnoreBudgets}}}
	executor := runner.Executor{Client: runner.NewClient(cluster.Client()), Clock: clock}
	var state drain.State
	var results []drain.Result
	for {
		in, err := runner.Observe(ctx, executor.Client, "node-1", policy, state)
		if err != nil {
			fmt.Println(err)
			return
		}
		in.Results = results
		var decision drain.Decision
		state, decision = drain.Step(state, in, policy, clock.Now())
		fmt.Println(clock.Now().Format("15:04:05"), "pods:", len(decision.Rows))
		for _, row := range decision.Rows {
			fmt.Println(row)
		}
		if decision.Over() {
			fmt.Println(decision.Outcome)
			return
		}
		if results, err = executor.Apply(ctx, decision); err != nil {
			fmt.Println(err)
		}

		clock.SetTime(decision.NextCheck) // or when an observed object changes
		cluster.Tick()
		if clock.Now().Second() == 30 { // web-1 is gone, and its replacement is ready
			if err := cluster.Add(webPod("web-3", "node-2")); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// 12:00:00 pods: 2
	// evict shop/web-1 (Evictable)
	// wait shop/web-2 (DisruptionBudget): budget shop/web allows 1 disruption: 2 of 2 healthy, 1 desired; already used for other pods; since 2026-03-01T12:00:00Z; deleted at 2026-03-01T14:00:00Z
	// 12:00:05 pods: 2
	// wait shop/web-1 (Terminating): since 2026-03-01T12:00:05Z; deleted at 2026-03-01T14:00:00Z
	// wait shop/web-2 (DisruptionBudget): budget shop/web allows 0 disruptions: 1 of 2 healthy, 1 desired; since 2026-03-01T12:00:00Z; deleted at 2026-03-01T14:00:00Z
	// 12:00:30 pods: 1
	// evict shop/web-2 (Evictable)
	// 12:00:35 pods: 1
	// wait shop/web-2 (Terminating): since 2026-03-01T12:00:35Z; deleted at 2026-03-01T14:00:00Z
	// 12:01:00 pods: 0
	// Drained
}
