// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// killedFiveTimes kills the manager during a roll, and breaks no bound.
func killedFiveTimes(t *testing.T, by composition) {
	s := cluster.Set(t, "killed", withShortLease(by.options()))
	manager := s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 10, 2, 1))

	// The worst moment is when a VM exists and is not recorded; the next worst is during its
	// deletion.
	moments := []drivertest.EventKind{
		drivertest.VMCreated, drivertest.VMDeletionBegan, drivertest.VMCreated, drivertest.VMReady, drivertest.VMCreated,
	}
	seen := watchCloud(t, s)
	roll(t, s, "workers", "large")
	for i, moment := range moments {
		await(t, seen, moment)
		was := holder(t, s)
		manager.Kill()
		missing, err := s.Complete("workers")(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, missing, "the roll is over before kill %d", i+1)
		s.Start(t, manager)
		s.Wait(t, patience, "the next one leads", ledAfter(s, was))
		for len(seen) > 0 {
			<-seen
		}
	}
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	for _, m := range machines(t, s) {
		require.Equal(t, "large", m.Spec.Class.Name)
	}
	removeAll(t, s)
}

// watchCloud returns the events of the cloud from now on. It drops old events that were not read.
func watchCloud(t *testing.T, s *env.Env) <-chan drivertest.EventKind {
	t.Helper()
	seen := make(chan drivertest.EventKind, 1000)
	t.Cleanup(s.Cloud.Subscribe(func(e drivertest.Event) {
		select {
		case seen <- e.Kind:
		default:
		}
	}))
	return seen
}

// await waits for an event of a kind.
func await(t *testing.T, seen <-chan drivertest.EventKind, kind drivertest.EventKind) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case k := <-seen:
			if k == kind {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no %s", kind)
		}
	}
}
