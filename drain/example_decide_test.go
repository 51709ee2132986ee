// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
)

// decidePod returns a pod of node-1. An empty kind is a pod without controller.
func decidePod(name, ownerKind string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	}
	if ownerKind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Controller: ptr.To(true)}}
	}
	return p
}

// A dry run says what happens to each pod and why, and which lists were not observed.
func ExampleDecide() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	decision := drain.Decide(drain.Observation{
		Looked: true, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		Pods: drain.All(decidePod("web", "ReplicaSet"), decidePod("agent", "DaemonSet"), decidePod("debug", "")),
	}, drain.Policy{}, now)
	fmt.Println(decision.Cordon)
	for _, row := range decision.Rows {
		fmt.Println(row)
	}
	fmt.Println("not evaluated:", decision.NotEvaluated)
	// Output:
	// cordon node node-1
	// ignore shop/agent (Stays): its DaemonSet would create it again
	// block shop/debug (Unmanaged): no controller would create it again; since 2026-03-01T12:00:00Z
	// evict shop/web (Evictable)
	// not evaluated: [budgets daemonsets]
}
