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
)

// Two pods under a budget that spares one of them: the second goes when the
// first has been replaced elsewhere.
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
	client := cluster.Client()
	policy := drain.Policy{RetryEvery: 30 * time.Second}
	var answers drain.Answers
	for {
		now := clock.Now()
		node, err := client.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
		if err != nil {
			fmt.Println(err)
			return
		}
		pods := make([]*corev1.Pod, len(list.Items))
		for i := range list.Items {
			pods[i] = &list.Items[i]
		}
		seen := drain.Observation{Looked: true, Node: node, PodsComplete: true, Pods: pods, Answers: answers}
		plan := drain.Decide(seen, policy, now)
		fmt.Print(now.Format("15:04:05"), "\n", plan)
		if plan.Done {
			return
		}
		results, err := drain.Carry(ctx, client, plan)
		if err != nil {
			fmt.Println(err)
		}
		answers = answers.After(plan, results, policy, now)
		for _, r := range results {
			fmt.Printf("-> %s %s %q\n", r.Row.Name, answers[r.Row.UID].Reason, answers[r.Row.UID].Message)
		}

		clock.SetTime(plan.NextCheck)
		cluster.Tick()
		if clock.Now().Minute() == 1 { // somebody replaces the first pod
			_ = cluster.Add(newPod("web-3", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }))
		}
	}
	// Output:
	// 12:00:00
	// cordon node node-1
	// evict shop/web-1 (Evictable)
	// evict shop/web-2 (Evictable)
	// until something changes, or 2026-03-01T12:00:30Z
	// -> web-1 Terminating ""
	// -> web-2 DisruptionBudget "The disruption budget web needs 1 healthy pods and has 1 currently"
	// 12:00:30
	// evict shop/web-2 (Evictable)
	// until something changes, or 2026-03-01T12:01:00Z
	// -> web-2 DisruptionBudget "The disruption budget web needs 1 healthy pods and has 1 currently"
	// 12:01:00
	// evict shop/web-2 (Evictable)
	// until something changes, or 2026-03-01T12:01:30Z
	// -> web-2 Terminating ""
	// 12:01:30
	// done
}

// A plan says what becomes of every pod, and why.
func ExampleDecide() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name, ownerKind string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
		if ownerKind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Controller: new(true)}}
		}
		return p
	}
	plan := drain.Decide(drain.Observation{
		Looked: true, PodsComplete: true,
		Pods: []*corev1.Pod{pod("web", "ReplicaSet"), pod("agent", "DaemonSet"), pod("debug", "")},
	}, drain.Policy{}, now)
	fmt.Print(plan)
	// Output:
	// ignore shop/agent (DaemonSetPod)
	// block shop/debug (Unmanaged): no controller would create it again
	// evict shop/web (Evictable)
	// until something changes, or 2026-03-01T12:00:05Z
}
