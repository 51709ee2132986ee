// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/safety"
)

// world is the environment of the demo: clusters, cloud, Nodes and controllers.
type world struct {
	clock    *fastClock
	control  *draintest.Cluster
	target   *draintest.Cluster
	cloud    *drivertest.Cloud
	machines versioned.Interface
	secrets  kubernetes.Interface
	nodes    kubernetes.Interface
	random   func() float64
	kubelets *hollow.Nodes
	policy   machine.Policy
	drains   atomic.Int64 // that have ended
	// idle stops the workload.
	idle atomic.Bool
	// working reports whether goroutines of the program run.
	working func() bool
	// watches is the largest number of watches that were open at a time.
	watches int
	// harmed are the machines that the story makes unavailable, with the version of
	// the control cluster at that time.
	harmed map[types.UID]string
}

// These are the delays of the simulated cloud and its Nodes, on the clock of the demo.
const (
	createLatency = 2 * time.Second
	bootTime      = 6 * time.Second
	joinTime      = 2 * time.Second
	deleteLatency = time.Second
	shutdownTime  = 2 * time.Second
	cloudLag      = time.Second
	podStopTime   = 3 * time.Second
	driverTimeout = 30 * time.Second
	leaseInterval = 5 * time.Second
	nodeGrace     = 20 * time.Second // the grace period of silent Nodes
)

// workloadNamespace and workload name the ReplicaSet of the pods and its PodDisruptionBudget.
const workloadNamespace, workload = "default", "app"

func newWorld(s settings, working func() bool) *world {
	w := &world{clock: newFastClock(s.speed), random: newRandom(s.seed), working: working, harmed: map[types.UID]string{}}
	w.control, w.machines = machinetest.New(draintest.Options{Clock: w.clock, Seed: s.seed})
	w.target = draintest.New(draintest.Options{Clock: w.clock, Seed: s.seed + 1})
	w.secrets, w.nodes = w.control.Client(), w.target.Client()
	w.cloud = drivertest.NewCloud(drivertest.CloudOptions{
		Clock: w.clock, Provider: "simulated", Seed: uint64(s.seed), //nolint:gosec // any bit pattern is a good seed
		CreateLatency: createLatency, BootTime: bootTime, DeleteLatency: deleteLatency, ShutdownTime: shutdownTime, Lag: cloudLag,
	})
	w.kubelets = &hollow.Nodes{
		Client: w.nodes, Clock: w.clock, VMs: hollow.VMsOf(w.cloud), JoinAfter: joinTime,
		LeaseInterval: leaseInterval, StatusInterval: time.Hour, // the Lease is sufficient
	}
	w.policy = machine.DefaultPolicy()
	w.policy.Settle = 2 * cloudLag
	w.policy.HealthTimeout, w.policy.DrainTimeout = 15*time.Second, 30*time.Second // so that machines fail soon
	return w
}

// busy reports whether the clock has to stand still: while the program works, and while a watch is
// closed. client-go opens it again after a pause in real time.
func (w *world) busy() bool {
	if w.working() {
		return true
	}
	open := w.control.Watching("") + w.target.Watching("")
	w.watches = max(w.watches, open)
	return open < w.watches
}

// working reports whether a goroutine other than its own runs or is ready to run.
func working() bool {
	goroutines := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(goroutines)
	return goroutines[0].Value.Uint64() > 1 || goroutines[1].Value.Uint64() > 0
}

// newRandom returns a source of random numbers that is safe for several goroutines.
func newRandom(seed int64) func() float64 {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(uint64(seed), 3)) //nolint:gosec // repeatable by intent
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Float64()
	}
}

// run runs the clusters, the Nodes, the workload and the controllers until the context ends. It
// returns the error of the controllers.
func (w *world) run(ctx context.Context, pods int, p *progress) error {
	var passing, running sync.WaitGroup
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	passing.Go(func() { w.clock.run(ticking, w.busy) })
	defer func() { // what still waits for the clock ends first
		running.Wait()
		stop()
		passing.Wait()
	}()
	running.Go(func() { w.control.Run(ctx) })
	running.Go(func() { w.target.Run(ctx) })
	running.Go(func() { w.play(ctx, pods) })
	return controllers.Run(ctx, controllers.Config{
		Random: w.random, Machines: w.machines, Control: w.secrets, Target: w.nodes, Clock: w.clock, Workers: 10, Observe: p.decision, Policy: w.policy,
		Orphans: safety.DefaultPolicy(), Guard: safety.DefaultGuardPolicy(), Drains: drainCount{w}, Driver: driver.Wrap(w.cloud, w.bounded),
	})
}

// bounded is a call of the driver with a deadline on the clock of the demo.
func (w *world) bounded(ctx context.Context, call string, run func(context.Context) error) error {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer w.clock.AfterFunc(driverTimeout, cancel).Stop()
	err := run(bounded)
	if err == nil || bounded.Err() == nil || ctx.Err() != nil {
		return err
	}
	return status.WrapError(codes.DeadlineExceeded, fmt.Sprintf("%s did not end within %s", call, driverTimeout), err)
}

// play simulates the Nodes and the workload. The next step repeats failed writes.
func (w *world) play(ctx context.Context, pods int) {
	client := w.target.Client()
	app := &hollow.Workload{
		Client: client, Namespace: workloadNamespace, Name: workload, Replicas: pods, GraceSeconds: int64(podStopTime / time.Second), Budget: true,
	}
	replicas, scheduler := &hollow.Replicas{Client: client}, &hollow.Scheduler{Client: client}
	nodeLifecycle := &hollow.Lifecycle{Client: client, Clock: w.clock, Grace: nodeGrace}
	for ctx.Err() == nil {
		work := app.Step
		if w.idle.Load() {
			work = app.Stop
		}
		for _, step := range []func(context.Context) error{work, replicas.Step, scheduler.Step, w.kubelets.Step, nodeLifecycle.Step} {
			_ = step(ctx)
		}
		select {
		case <-ctx.Done():
		case <-w.clock.After(time.Second):
		}
	}
}
