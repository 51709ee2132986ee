// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// TestRequests_FakeClient_DrainsToTheEnd drains and uncordons over the fake client of controller-runtime, which has
// no UIDs.
func TestRequests_FakeClient_DrainsToTheEnd(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: owner}, Spec: corev1.PodSpec{NodeName: node}}
	}
	objects := fake.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, pod("web-1", "node-1"), pod("web-2", "node-1"), pod("web-3", "node-2")).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }). //nolint:forcetypeassert // only pods
		Build()
	e := runner.Executor{Client: requests{objects}}
	for name, policy := range map[string]drain.Policy{"evictions": {RetryEvery: time.Second}, "deletions": {RetryEvery: time.Second, Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}, Cordon: nodeops.Cordon{Owner: "a"}}} {
		d, err := e.Run(t.Context(), "node-1", policy)
		if err != nil || d.Outcome != drain.Drained {
			t.Fatal(name, d.Outcome, err)
		}
		var left corev1.PodList
		if err := objects.List(t.Context(), &left); err != nil || len(left.Items) != 1 {
			t.Fatal(name, left.Items, err)
		}
		node := &corev1.Node{}
		if err := objects.Get(t.Context(), client.ObjectKey{Name: "node-1"}, node); err != nil || !node.Spec.Unschedulable {
			t.Fatal(name, node, err)
		}
		if err := e.Uncordon(t.Context(), "node-1", policy.Cordon.Owner); err != nil {
			t.Fatal(name, err)
		}
		if err := objects.Get(t.Context(), client.ObjectKey{Name: "node-1"}, node); err != nil || node.Spec.Unschedulable || len(node.Annotations) > 0 {
			t.Fatal(name, node, err)
		}
		if err := objects.Create(t.Context(), pod("web-4", "node-1")); err != nil {
			t.Fatal(err)
		}
	}
}
