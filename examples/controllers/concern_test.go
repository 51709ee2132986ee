// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/safety/runner"
)

// concernHarness runs only the loop of one concern of package safety, over two clusters in memory.
type concernHarness struct {
	t               *testing.T
	cfg             *Config
	control, target *draintest.Cluster
	events          *record.FakeRecorder
	mu              sync.Mutex // of the fields below, which the loop writes
	passes          int
	failed          []error
}

func newConcernHarness(t *testing.T) *concernHarness {
	t.Helper()
	control, machines := machinetest.New(draintest.Options{})
	r := &concernHarness{t: t, control: control, target: draintest.New(draintest.Options{}), events: record.NewFakeRecorder(100)}
	r.cfg = &Config{
		Namespace: ns, Machines: machines, Control: control.Client(), Target: r.target.Client(), Policy: machine.DefaultPolicy(),
		Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Events: r.events,
		Observe: func(n Note) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.passes++
			if n.Err != nil {
				r.failed = append(r.failed, n.Err)
			}
		},
	}
	require.NoError(t, r.cfg.complete())
	return r
}

// told returns the number of passes, and the errors of those that failed.
func (r *concernHarness) told() (passes int, failed []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passes, slices.Clone(r.failed)
}

// start runs the loop until the returned function is called or the test ends.
func (r *concernHarness) start(concern runner.Concern) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	c := newCaches(r.cfg)
	l := only(r.cfg, c, concern)
	require.NoError(r.t, c.start(ctx))
	done := make(chan struct{})
	go func() { defer close(done); l.run(ctx) }()
	stop = func() { cancel(); <-done; c.shutdown() }
	r.t.Cleanup(stop)
	return stop
}
