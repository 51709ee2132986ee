// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// outage is for how long the API server is away.
const outage = 20 * time.Second

// outageGrace is how long a Node may be silent until the controller manager of such a
// control plane calls it unknown: longer than the API server is away and takes to
// start, and than the controller manager waits then until it looks at Leases again.
// That is up to a minute, the longest pause of client-go, which begins anew if the API
// server that starts refuses it first.
const outageGrace = 3 * time.Minute

// ownHouse opens a cluster on a control plane that no other test has. Its controller manager
// calls a Node unknown that was silent for the grace period.
func ownHouse(t *testing.T, grace time.Duration) *env.Cluster {
	t.Helper()
	logs, err := os.MkdirTemp("", "machinist-outage-logs-") //nolint:usetesting // it stays if the test fails
	require.NoError(t, err)
	c, err := controlplane.Start(t.Context(), controlplane.Options{LogDir: logs, NodeMonitorGracePeriod: grace})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs of the control plane are in %s", logs)
		} else if err := os.RemoveAll(logs); err != nil {
			t.Error(err)
		}
	})
	own, err := env.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	return own
}

func TestAPIServer_DownDuringARoll_BreaksNoBound(t *testing.T) {
	t.Parallel()
	own := ownHouse(t, outageGrace)
	var began, ended time.Time // ended when it is ready: it answers before
	o := withShortLease(fastOptions())
	o.Outage = true
	o.Bounds.Steady = true                              // no machine fails by itself; an unavailable machine was brought down
	o.AllowDenied = func(r controlplane.Request) bool { // an API server that starts knows no roles yet
		return r.Code == http.StatusForbidden && r.Time.After(began) && r.Time.Before(ended)
	}
	s := own.Set(t, "outage", o)
	manager := s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 8, 2, 1))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	restarts := make(chan int, 1)
	go func() { restarts <- manager.Supervise(ctx) }()
	seen := watchCloud(t, s)
	roll(t, s, "workers", "large")
	await(t, seen, drivertest.VMCreated)
	require.NoError(t, own.ControlPlane.StopAPIServer(t.Context()))
	began = time.Now()
	before := len(s.Cloud.History())
	missing, _ := s.Complete("workers")(t.Context())
	require.NotEmpty(t, missing)
	select {
	case <-time.After(outage):
	case <-t.Context().Done():
	}
	returning := time.Now()
	require.NoError(t, own.ControlPlane.StartAPIServer(t.Context()))
	ended = time.Now()
	t.Logf("the API server was away for %.1f s", ended.Sub(began).Seconds())

	s.Wait(t, patience, "rolled", s.Complete("workers"))
	for _, m := range machines(t, s) {
		require.Equal(t, "large", m.Spec.Class.Name)
	}
	cancel()
	t.Logf("the manager was started again %d times", <-restarts)
	// Nothing began while it could not be recorded. A call in flight may have ended in the first
	// seconds.
	for _, e := range s.Cloud.History()[before:] {
		if e.Time.After(began.Add(5*time.Second)) && e.Time.Before(returning) {
			require.NotContains(t, []drivertest.EventKind{drivertest.VMCreated, drivertest.VMDeletionBegan}, e.Kind, "%s", e)
		}
	}
	for _, c := range s.AuditLog().Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok {
			require.NotContains(t, []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineFailed}, m.Status.CurrentStatus.Phase, "%s", c)
		}
	}
	events, err := s.Client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=NodeNotReady"})
	require.NoError(t, err)
	require.Empty(t, events.Items, "no node was unhealthy")
	s.Wait(t, 30*time.Second, "a VM for each machine, and no other", func(context.Context) (string, error) {
		if n := len(s.Cloud.Snapshot().VMs); n != 8 { // the last one to go may outlive its machine for a moment
			return fmt.Sprintf("%d VMs", n), nil
		}
		return "", nil
	})
	removeAll(t, s)
}
