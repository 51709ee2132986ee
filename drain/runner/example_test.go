// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// exampleWaits ends a drain as soon as it waits for a pod.
type exampleWaits struct {
	end  context.CancelFunc
	told drain.Progress
}

func (w *exampleWaits) Observe(e drain.Progress) {
	if e.Type == drain.ProgressWaiting {
		w.told = e
		w.end()
	}
}

// Run is a drain in one call. This one is kept up by a budget: the Observer is told, and here
// ends the context. What was waited for is in the plan, with or without error.
func ExampleExecutor_Run() {
	cluster := draintest.New(draintest.Options{})
	if err := cluster.Add(newNode("node-1"), newPod("web-1"), newBudget("web", "web", 1)); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()

	observer := &exampleWaits{end: cancel}
	plan, err := runner.Executor{Client: cluster.Client(), Observer: observer}.Run(ctx, "node-1", drain.Policy{})
	fmt.Println(observer.told)
	fmt.Println(plan.Over(), errors.Is(err, context.Canceled))
	for _, hold := range plan.Holds() {
		fmt.Println(hold.Subject, hold.Reason)
	}
	// Output:
	// Waiting pod/shop/web-1 (BudgetNeverAllows): budget shop/web never allows a disruption of so few pods, minAvailable is 1: 1 of 1 healthy, 1 desired
	// false true
	// pod/shop/web-1 BudgetNeverAllows
}

// Run refuses what it cannot finish before it changes anything: kubectl drain has flags for
// such pods, and a policy has fields.
func ExampleExecutor_Run_refused() {
	cluster := draintest.New(draintest.Options{})
	if err := cluster.Add(newNode("node-1"), newPod("web-1"), newPod("debug", unmanaged)); err != nil {
		fmt.Println(err)
		return
	}
	executor := runner.Executor{Client: cluster.Client()}
	plan, err := executor.Run(context.Background(), "node-1", drain.Policy{})
	fmt.Println(err, errors.Is(err, runner.ErrNotFeasible))
	for _, row := range plan.Obstacles() {
		fmt.Println(row.Name, row.Reason)
	}
	_, err = executor.Run(context.Background(), "node-2", drain.Policy{})
	fmt.Println(err, errors.Is(err, runner.ErrNodeNotFound))
	// Output:
	// drain: not feasible, and nothing was changed: node node-1: pod/shop/debug: Unmanaged: no controller would create it again true
	// debug Unmanaged
	// drain: there is no such node: node node-2 true
}

// A controller shares its informers with all of its drains. Each event puts the names
// of the Nodes that it concerns into a queue; nothing waits in between.
func ExampleInformers() {
	cluster := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return 0 }})
	if err := cluster.Add(newNode("node-1"), newPod("web-1"), newPod("web-2")); err != nil {
		fmt.Println(err)
		return
	}
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	defer factory.Shutdown()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go cluster.Run(ctx)

	found, err := runner.NewInformers(factory, drain.SourceBudgets, drain.SourceDaemonSets)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	if err := found.OnChange(queue.Add); err != nil {
		fmt.Println(err)
		return
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)

	executor := runner.Executor{Client: cluster.Client()}
	states := map[string]drain.State{} // or as JSON, in the objects of the controller
	for {
		node, _ := queue.Get()
		in, err := runner.Observe(ctx, found, node, drain.Policy{}, states[node])
		if err != nil {
			fmt.Println(err)
			return
		}
		state, plan, err := executor.Pass(ctx, states[node], in, drain.Policy{}, node)
		if err != nil {
			fmt.Println(err)
			return
		}
		states[node] = state
		queue.Done(node)
		if plan.Over() {
			fmt.Println(node, plan.Outcome, plan.GoneSoFar)
			return
		}
		queue.AddAfter(node, time.Until(plan.NextCheck))
	}
	// Output: node-1 Drained 2
}

// A dry run looks once, and only at what the policy has a use for.
func ExampleLive() {
	cluster := draintest.New(draintest.Options{})
	if err := cluster.Add(newNode("node-1"), newPod("web-1"), newPod("debug", unmanaged)); err != nil {
		fmt.Println(err)
		return
	}
	policy := drain.Policy{}
	in, err := runner.Observe(context.Background(), runner.Live{Client: cluster.Client()}, "node-1", policy, drain.State{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range drain.Decide(in, policy, time.Now()).Rows {
		fmt.Println(row.Action, row.Name, row.Reason)
	}
	// Output:
	// block debug Unmanaged
	// evict web-1 Evictable
}
