// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// manyController drains every Node it hears of: what a controller with two workers does.
type manyController struct {
	executor runner.Executor
	found    *runner.Informers
	policy   drain.Policy
	queue    workqueue.TypedInterface[string]

	mu     sync.Mutex
	states map[string]drain.State
	plans  map[string]drain.Decision
	idle   *sync.Cond
	rounds int
	errs   []error
}

func newManyController(executor runner.Executor, found *runner.Informers) *manyController {
	c := &manyController{
		executor: executor, found: found, queue: workqueue.NewTyped[string](),
		states: map[string]drain.State{}, plans: map[string]drain.Decision{},
	}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// work steps one Node after the other.
func (c *manyController) work(ctx context.Context) {
	for {
		node, ended := c.queue.Get()
		if ended {
			return
		}
		c.step(ctx, node)
		c.queue.Done(node)
		c.mu.Lock()
		c.rounds++
		c.idle.Broadcast()
		c.mu.Unlock()
	}
}

func (c *manyController) step(ctx context.Context, node string) {
	c.mu.Lock()
	state, over := c.states[node], c.plans[node].Over()
	c.mu.Unlock()
	if over {
		return
	}
	in, err := runner.Observe(ctx, c.found, node, c.policy, state)
	var plan drain.Decision
	if err == nil {
		state, plan, err = c.executor.Pass(ctx, state, in, c.policy, node)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	c.states[node], c.plans[node] = state, plan
}

// wait returns when a condition holds for so many drains.
func (c *manyController) wait(t *testing.T, n int, holds func(plan drain.Decision) bool) {
	t.Helper()
	stop := context.AfterFunc(t.Context(), c.idle.Broadcast)
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for t.Context().Err() == nil {
		require.Empty(t, c.errs)
		count := 0
		for _, plan := range c.plans {
			if holds(plan) {
				count++
			}
		}
		if count == n {
			return
		}
		for next := c.rounds + max(1, (n-count)/2); c.rounds < next && t.Context().Err() == nil; {
			c.idle.Wait()
		}
	}
}

// Ten thousand drains that wait hold no goroutine: two workers and the informers are
// enough for all of them.
func TestDD64TenThousandDrainsHoldNoWorker(t *testing.T) {
	n := manyNodes
	if testing.Short() {
		n = min(n, 1000)
	}
	var few, many int
	t.Run("few", func(t *testing.T) { few = manyDrains(t, 100) })
	t.Run("many", func(t *testing.T) { many = manyDrains(t, n) })
	require.Equal(t, few, many, "goroutines while they wait")
}

// manyDrains drains so many Nodes, each with a pod that a budget keeps for a while, and
// returns how many goroutines there are while all of them wait.
func manyDrains(t *testing.T, n int) int {
	t.Helper()
	start := time.Now()
	clock := clocktesting.NewFakeClock(now)
	cluster := draintest.New(draintest.Options{Clock: clock, ManualBudgets: true, StopTime: func(*corev1.Pod) time.Duration { return time.Second }})
	const perBudget = 100
	for i := range n {
		node := openNode()
		node.Name, node.UID = fmt.Sprint("node-", i), types.UID(fmt.Sprint("uid-node-", i))
		pod := newPod(fmt.Sprint("web-", i), func(p *corev1.Pod) {
			p.Namespace, p.Spec.NodeName = fmt.Sprint("shop-", i/perBudget), node.Name
		})
		require.NoError(t, cluster.Add(node, pod))
	}
	for i := range n / perBudget {
		require.NoError(t, cluster.Add(manyBudget(i, perBudget, 0)))
	}
	cluster.ForgetHistory()
	client := cluster.Clientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	found, err := runner.NewInformers(factory, drain.SourceBudgets, drain.SourceDaemonSets)
	require.NoError(t, err)
	c := newManyController(runner.Executor{Client: client, Clock: clock, Parallel: 1}, found)
	require.NoError(t, found.OnChange(c.queue.Add))
	sourceStart(t, factory)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { c.work(t.Context()) })
	}
	defer workers.Wait()
	defer c.queue.ShutDown()

	c.wait(t, n, func(plan drain.Decision) bool {
		return plan.Fence == nil && len(plan.Rows) == 1 && plan.Rows[0].Verdict == drain.Wait
	})
	goroutines := runtime.NumGoroutine()
	blocked := time.Since(start)
	for i := range n / perBudget {
		require.NoError(t, cluster.Add(manyBudget(i, perBudget, perBudget)))
	}
	c.wait(t, n, func(plan drain.Decision) bool {
		return plan.Over() || len(plan.Rows) == 1 && plan.Rows[0].Reason == drain.ReasonTerminating
	})
	clock.Step(time.Second)
	cluster.Tick()
	c.wait(t, n, func(plan drain.Decision) bool { return plan.Outcome == drain.Drained })
	t.Logf("%d drains: blocked after %s, drained after %s, %d rounds, %d goroutines", n,
		blocked.Round(time.Millisecond), time.Since(start).Round(time.Millisecond), c.rounds, goroutines)
	counts := map[string]int{}
	for _, asked := range execAsked(client) {
		counts[asked]++
	}
	require.Equal(t, n, counts["create pods/eviction"], "each pod is asked once")
	require.Equal(t, n, counts["patch nodes"])
	require.Equal(t, n+1, counts["list pods"])
	require.Zero(t, counts["get nodes"]+counts["get pods"])
	return goroutines
}

// manyBudget covers a namespace of so many pods and allows so many disruptions.
func manyBudget(i int, pods, allowed int32) *policyv1.PodDisruptionBudget {
	minimum := pods - allowed
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("shop-", i), Name: "web", UID: types.UID(fmt.Sprint("uid-web-", i)), Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(minimum)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: pods, DesiredHealthy: minimum, ExpectedPods: pods,
		},
	}
}
