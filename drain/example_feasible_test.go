// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
)

// blockedNode returns a cordoned Node with one pod, and a PodDisruptionBudget that never allows a
// disruption.
func blockedNode() drain.Observation {
	return drain.Observation{
		Looked: true, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{Unschedulable: true}},
		Pods: drain.All(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "db-0", UID: "1", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		}),
		Budgets: drain.All(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{}},
			Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, DesiredHealthy: 3, ExpectedPods: 3},
		}),
	}
}

// Feasible reports before the first request whether the drain can end. A ladder that ignores the
// PodDisruptionBudget after an hour makes this drain feasible.
func ExampleDecision_Feasible() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	decision := drain.Decide(blockedNode(), drain.Policy{}, now)
	fmt.Println(decision.Feasible())
	for _, row := range decision.Obstacles() {
		fmt.Println(row)
	}
	decision = drain.Decide(blockedNode(), drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}}, now)
	fmt.Println(decision.Feasible())
	fmt.Println(decision.Next, decision.NextAt.Format("15:04:05"))
	// Output:
	// false
	// wait shop/db-0 (BudgetNeverAllows): budget shop/db never allows a disruption, maxUnavailable is 0: 3 of 3 healthy, 3 desired; since 2026-03-01T12:00:00Z
	// true
	// IgnoreBudgets 13:00:00
}
