// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// Two pods under a budget that spares one of them: the second goes when the first has
// been replaced elsewhere. The loop is the caller's, who may as well be a controller
// that keeps the state in memory and is woken by its informers.
func Example() {
	ctx := context.Background()
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cluster := draintest.New(draintest.Options{Clock: clock})
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	if err := cluster.Add(node, newPod("web-1"), newPod("web-2"), budget); err != nil {
		fmt.Println(err)
	}

	policy := drain.Policy{Ladder: drain.Ladder{{After: 2 * time.Hour, Action: drain.IgnoreBudgets}}}
	executor := runner.Executor{Client: cluster.Client(), Clock: clock}
	var state drain.State
	var results []drain.Result
	for {
		seen, err := runner.Observe(ctx, runner.Live{Client: executor.Client}, "node-1", policy, state)
		if err != nil {
			fmt.Println(err)
			return
		}
		seen.Results = results
		var plan drain.Decision
		state, plan = drain.Step(state, seen, policy, clock.Now())
		fmt.Printf("%s %d pods\n", clock.Now().Format("15:04:05"), len(plan.Rows))
		for _, row := range plan.Rows {
			fmt.Println(row)
		}
		if plan.Over() {
			fmt.Println(plan.Outcome)
			return
		}
		results, err = executor.Apply(ctx, plan)
		if err != nil {
			fmt.Println(err)
		}

		clock.SetTime(plan.NextCheck) // or when something changes
		cluster.Tick()
		if clock.Now().Second() == 30 { // the first pod is gone, and its replacement runs
			_ = cluster.Add(newPod("web-3", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }))
		}
	}
	// Output:
	// 12:00:00 2 pods
	// evict shop/web-1 (Evictable)
	// wait shop/web-2 (DisruptionBudget): budget shop/web allows 1 disruption: 2 of 2 healthy, 1 desired; other pods take that; since 2026-03-01T12:00:00Z; deleted at 2026-03-01T14:00:00Z
	// 12:00:05 2 pods
	// wait shop/web-1 (Terminating): since 2026-03-01T12:00:05Z; deleted at 2026-03-01T14:00:00Z
	// wait shop/web-2 (DisruptionBudget): budget shop/web allows 0 disruptions: 1 of 2 healthy, 1 desired; since 2026-03-01T12:00:00Z; deleted at 2026-03-01T14:00:00Z
	// 12:00:30 1 pods
	// evict shop/web-2 (Evictable)
	// 12:00:35 1 pods
	// wait shop/web-2 (Terminating): since 2026-03-01T12:00:35Z; deleted at 2026-03-01T14:00:00Z
	// 12:01:00 0 pods
	// Drained
}

// A dry run: the plan says what would become of every pod and why, and what was
// not observed, before anything is written.
func ExampleDecide() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name, ownerKind string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		}
		if ownerKind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Controller: new(true)}}
		}
		return p
	}
	plan := drain.Decide(drain.Observation{
		Looked: true, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		Pods: drain.All(pod("web", "ReplicaSet"), pod("agent", "DaemonSet"), pod("debug", "")),
	}, drain.Policy{}, now)
	fmt.Println(plan.Cordon)
	for _, row := range plan.Rows {
		fmt.Println(row)
	}
	fmt.Println("not evaluated:", plan.NotEvaluated)
	// Output:
	// cordon node node-1
	// ignore shop/agent (Stays): its DaemonSet would create it again
	// block shop/debug (Unmanaged): no controller would create it again; since 2026-03-01T12:00:00Z
	// evict shop/web (Evictable)
	// not evaluated: [budgets daemonsets]
}

// Whether a drain can come to its end is known before the first write, as far as its
// sources tell: here a budget allows nothing, and the ladder never gets past it.
func ExampleDecision_Feasible() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seen := drain.Observation{
		Looked: true, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{Unschedulable: true}},
		Pods: drain.All(newPod("db-0")),
		Budgets: drain.All(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{}},
			Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, DesiredHealthy: 3, ExpectedPods: 3},
		}),
	}
	plan := drain.Decide(seen, drain.Policy{}, now)
	fmt.Println(plan.Feasible())
	for _, row := range plan.Obstacles() {
		fmt.Println(row)
	}
	plan = drain.Decide(seen, drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}}, now)
	fmt.Println(plan.Feasible())
	fmt.Println(plan.Next, plan.NextAt.Format("15:04:05"))
	// Output:
	// false
	// wait shop/db-0 (BudgetNeverAllows): budget shop/db never allows a disruption, maxUnavailable is 0: 3 of 3 healthy, 3 desired; since 2026-03-01T12:00:00Z
	// true
	// IgnoreBudgets 13:00:00
}
