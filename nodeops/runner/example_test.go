// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/nodeops/runner"
)

// After a conflict with another writer, the edit is made again on the stored Node.
func ExampleUpdateNode() {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	preserved := corev1.Taint{Key: "node.machine.sapcloud.io/preserved", Effect: corev1.TaintEffectNoSchedule}
	edit := func(node *corev1.Node) (changed bool, _ error) {
		node.Spec.Taints, changed = nodeops.SetTaint(node.Spec.Taints, preserved)
		return changed, nil
	}
	for range 2 {
		node, changed, err := runner.UpdateNode(context.Background(), client.CoreV1().Nodes(), "worker-1", edit)
		fmt.Println(len(node.Spec.Taints), changed, err)
	}
	// Output:
	// 1 true <nil>
	// 1 false <nil>
}

// A UID as precondition protects a new Node of the same name.
func ExampleUncordonNode() {
	ctx, now := context.Background(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "4711"}})
	_, err := runner.CordonNode(ctx, client.CoreV1().Nodes(), "worker-1", "4711", nodeops.Cordon{Owner: "os-update"}, now)
	fmt.Println(err)
	fmt.Println(runner.UncordonNode(ctx, client.CoreV1().Nodes(), "worker-1", "4711", "os-update"))
	fmt.Println(runner.UncordonNode(ctx, client.CoreV1().Nodes(), "worker-1", "0815", "os-update"))
	// Output:
	// <nil>
	// true <nil>
	// false node "worker-1": the node was replaced by another of the same name
}
