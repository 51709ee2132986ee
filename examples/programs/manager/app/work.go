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

	bounded := driver.WithDeadline(m.driver, m.s.DriverTimeouts)
	m.health.watchCalls(m.s.DriverTimeouts, func() []driver.Call { return driver.Abandoned(bounded) })
	done := make(chan error, 1)
	go func() {
		done <- controllers.Run(working, m.config(m.gatedDriver(calls, bounded), events)) //nolint:contextcheck // a log has no context
	}()
	select {
	case err := <-done: // by itself, or at once
		return m.ended(working, err)
	case <-working.Done():
	}
	inFlight := m.gate.calls()
	m.log.Info("stops", "calls", len(inFlight), "inFlight", inFlight, "abandoned", len(m.health.abandoned()))
	m.health.stop()
	select { // the grace of calls in flight ends when another process may lead
	case err := <-done:
		return m.ended(working, err)
	case <-lease.Done():
	case <-time.After(m.grace):
	}
	cut()
	select {
	case err := <-done:
		return m.ended(working, err)
	case <-time.After(m.unwind):
		return errStuck
	}
}

// config returns the configuration of the controllers.
func (m *manager) config(d driver.Driver, events *events) controllers.Config {
	c := m.s.Config()
	c.Part, c.Driver, c.Resync = m.part, d, spread(c.Resync)
	c.Machines, c.SetClient, c.Control, c.Target = m.clients.machines, m.clients.sets, m.clients.control, m.clients.target
	c.ProbeMachines, c.ProbeTarget, c.Probed = m.clients.probeMachines, m.clients.probeTarget, m.health.probed
	c.Observe, c.Events, c.Started = m.observe(), events.recorder, m.started
	c.Drains, c.QueueMetrics, c.Collected = m.health.metrics.Drains(), m.health.metrics.Queues(), m.health.metrics.Collected
	return c
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

// gatedDriver returns a driver with deadlines behind the gate of the lease, or nil without a driver.
// Its calls end with the context.
func (m *manager) gatedDriver(calls context.Context, bounded driver.Driver) driver.Driver {
	if m.driver == nil {
		return nil
	}
	return finishing(calls, m.gate, m.health.metrics.Driver(bounded))
}

// ended returns the error of the controllers, or nil if they were asked to stop. With an abandoned
// call it is errStuck, so that the lease is not released while the call may have an effect.
func (m *manager) ended(working context.Context, err error) error {
	if len(m.health.abandoned()) > 0 {
		return errors.Join(errStuck, err)
	}
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
