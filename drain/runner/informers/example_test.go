// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	draininformers "github.com/machinist-dev/machinist/drain/runner/informers"
)

// exampleCluster returns a cluster with a Node and two pods, which stop at once.
func exampleCluster() (*draintest.Cluster, error) {
	cluster := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return 0 }})
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{NodeName: "node-1"},
		}
	}
	return cluster, cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, pod("web-1"), pod("web-2"))
}

// drainQueued makes passes over the Nodes of a queue until one of them is drained.
func drainQueued(ctx context.Context, executor runner.Executor, reader machinist.Reader, queue workqueue.TypedRateLimitingInterface[string]) error {
	states := map[string]drain.State{} // a controller may keep them as JSON in its objects
	for {
		node, _ := queue.Get()
		in, err := runner.Observe(ctx, reader, node, drain.Policy{}, states[node])
		if err != nil {
			return err
		}
		state, decision, err := executor.Pass(ctx, states[node], in, drain.Policy{}, node)
		if err != nil {
			return err
		}
		states[node] = state
		queue.Done(node)
		if decision.Over() {
			fmt.Println(node, decision.Outcome, decision.GoneSoFar)
			return nil
		}
		queue.AddAfter(node, time.Until(decision.NextCheck))
	}
}

// A controller shares its informers among all drains. OnChange adds the names of the Nodes that an
// event concerns to a queue. No goroutine waits between two passes.
func ExampleInformers() {
	cluster, err := exampleCluster()
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	defer factory.Shutdown()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go cluster.Run(ctx)

	reader, err := draininformers.New(factory, drain.SourceBudgets, drain.SourceDaemonSets)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	if err := reader.OnChange(queue.Add); err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := drainQueued(ctx, runner.Executor{Client: runner.NewClient(cluster.Client())}, reader, queue); err != nil {
		fmt.Println(err)
	}
	// Output: node-1 Drained 2
}
