// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// Run refuses a drain that cannot end before it changes anything. Like the flags of kubectl drain,
// the fields of a Policy allow the eviction of such pods: here EvictUnmanaged.
func ExampleExecutor_Run_refused() {
	cluster := draintest.New(draintest.Options{})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	debug := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "debug"}, Spec: corev1.PodSpec{NodeName: "node-1"},
	}
	if err := cluster.Add(node, debug); err != nil {
		fmt.Println(err)
		return
	}
	executor := runner.Executor{Client: runner.NewClient(cluster.Client())}
	decision, err := executor.Run(context.Background(), "node-1", drain.Policy{})
	fmt.Println(err)
	fmt.Println(errors.Is(err, runner.ErrNotFeasible))
	for _, row := range decision.Obstacles() {
		fmt.Println(row.Name, row.Reason)
	}
	_, err = executor.Run(context.Background(), "node-2", drain.Policy{})
	fmt.Println(err)
	fmt.Println(apierrors.IsNotFound(err))
	cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
	_, err = executor.Run(context.Background(), "node-1", drain.Policy{EvictUnmanaged: true})
	if refused := (*runner.RefusedError)(nil); errors.As(err, &refused) {
		fmt.Println("a right is missing:", refused.Verb, refused.Resource)
	}
	// Output:
	// drain: not feasible, and nothing was changed: node node-1: pod/shop/debug: Unmanaged: no controller would create it again
	// true
	// debug Unmanaged
	// drain: there is no such node: nodes "node-2" not found
	// true
	// a right is missing: patch nodes
}
