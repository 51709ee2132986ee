// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/controllers"
)

// errStuck means that a driver call continues after the end of its context.
var errStuck = errors.New("a driver call has not ended although its context has")

// work runs the controllers until the context or the lease ends. When the context has ended, driver
// calls in flight have a grace period. When the lease has ended, they have none.
func (m *manager) work(ctx, lease context.Context, events *events) error {
	if ctx.Err() != nil || lease.Err() != nil {
		return nil
	}
	m.health.lead()
	working, stop := context.WithCancel(ctx)
	defer stop()
	calls, cut := context.WithCancel(lease)
	defer cut()
	defer context.AfterFunc(lease, stop)()

	var releasing sync.WaitGroup
	releasing.Go(func() { m.releaseAccess(working) })
	releasing.Go(func() { m.watchServed(working, m.fail) })
	defer releasing.Wait()
	defer stop()

	done := make(chan error, 1)
	go func() {
		done <- controllers.Run(working, controllers.Config{
			Part: m.part, Shard: m.s.Shard, Namespace: m.s.Namespace, Machines: m.clients.machines, SetClient: m.clients.sets, Control: m.clients.control, Target: m.clients.target,
			Driver: m.gatedDriver(calls),
			Policy: m.s.MachinePolicy(), ReattachTimeout: m.s.PVReattachTimeout, Deployments: m.s.DeploymentPolicy(), TokenGroups: m.s.BootstrapGroups(),
			Orphans: m.s.OrphanPolicy(), Overshoot: m.s.OvershootPolicy(), Guard: m.s.GuardPolicy(), Freeze: m.s.FreezePolicy(),
			Workers: m.s.ConcurrentSyncs, Resync: spread(m.s.MinResyncPeriod),
			ProbeMachines: m.clients.probeMachines, ProbeTarget: m.clients.probeTarget, Probed: m.health.probed, Collected: m.health.metrics.Collected,
			Observe: m.observe(), Drains: m.health.metrics.Drains(), QueueMetrics: m.health.metrics.Queues(), Events: events.recorder, Started: m.started, //nolint:contextcheck // a log has no context
		})
	}()
	select {
	case err := <-done: // by itself, or at once
		return ended(working, err)
	case <-working.Done():
	}
	inFlight := m.gate.calls()
	m.log.Info("stops", "calls", len(inFlight), "inFlight", inFlight)
	m.health.stop()
	select { // the grace of calls in flight ends when another process may lead
	case err := <-done:
		return ended(working, err)
	case <-lease.Done():
	case <-time.After(m.grace):
	}
	cut()
	select {
	case err := <-done:
		return ended(working, err)
	case <-time.After(m.unwind):
		return errStuck
	}
}

// observe returns the function that logs and counts decisions.
func (m *manager) observe() func(controllers.Note) {
	log := observer(m.log)
	return func(n controllers.Note) {
		m.health.metrics.Decided(n)
		log(n)
	}
}

func (m *manager) started(v controllers.Views) {
	m.health.metrics.Watch(v)
	m.health.fill()
	m.log.Info("works", "identity", m.identity)
}

// gatedDriver returns the driver behind the gate of the lease, or nil without a driver. Its calls
// end with the context.
func (m *manager) gatedDriver(calls context.Context) driver.Driver {
	if m.driver == nil {
		return nil
	}
	return finishing(calls, m.gate, m.health.metrics.Driver(driver.WithDeadline(m.driver, driver.Timeouts{})))
}

// ended returns the error of the controllers, or nil if they were asked to stop.
func ended(working context.Context, err error) error {
	if working.Err() != nil && errors.Is(err, context.Canceled) || err == nil {
		return nil
	}
	return fmt.Errorf("controllers: %w", err)
}

// spread returns a random time between a period and its double, so that several kinds of process do
// not reconcile everything at the same moment.
func spread(period time.Duration) time.Duration {
	return period + time.Duration(rand.Float64()*float64(period)) //nolint:gosec // spreads load, guards nothing
}
