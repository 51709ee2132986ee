// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// The first update of a Node fails with an injected conflict.
func ExampleCluster_Inject() {
	ctx := context.Background()
	cluster := draintest.New(draintest.Options{})
	_ = cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "update", Resource: "nodes", Times: 1})

	nodes := cluster.Client().CoreV1().Nodes()
	for range 2 {
		node, err := nodes.Get(ctx, "node-1", metav1.GetOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		node.Spec.Unschedulable = true
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		fmt.Println("conflict:", apierrors.IsConflict(err))
	}
	for _, write := range cluster.History() {
		fmt.Println(write.Actor, write.Verb, write.Name)
	}
	// Output:
	// conflict: true
	// conflict: false
	// seed create node-1
	// client update node-1
}
