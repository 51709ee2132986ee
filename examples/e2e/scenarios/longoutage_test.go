// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// longOutage is how long the API server is stopped: six health timeouts.
	longOutage = 3 * time.Minute
	// shortGrace lets the controller manager call a silent Node unknown soon.
	shortGrace = 20 * time.Second
	// slowReport is after how long the Nodes report again. A manager has decided by then.
	slowReport = 20 * time.Second
	// outageHealthTimeout is the health timeout of the machines.
	outageHealthTimeout = 30 * time.Second
)

// allIn holds when all machines of an environment are in a phase.
func allIn(s *env.Env, phase v1alpha1.MachinePhase) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "the machines are not known", err
		}
		for _, m := range list.Items {
			if m.Status.CurrentStatus.Phase != phase {
				return fmt.Sprintf("machine %s is %s", m.Name, m.Status.CurrentStatus.Phase), nil
			}
		}
		return "", nil
	}
}

// noneReplaced fails if a machine was failed or deleted, or if one was created that is
// not among uids.
func noneReplaced(t *testing.T, s *env.Env, uids map[types.UID]bool) {
	t.Helper()
	for _, c := range s.AuditLog().Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok {
			require.True(t, uids[m.UID], "%s", c)
			require.NotEqual(t, v1alpha1.MachineFailed, m.Status.CurrentStatus.Phase, "%s", c)
			require.Nil(t, m.DeletionTimestamp, "%s", c)
		}
	}
	require.Len(t, s.Cloud.Snapshot().VMs, len(uids))
}

// TestOutage_LongerThanHealthTimeout_NoMachineReplaced stops the API server when all Nodes
// have been silent for so long that every machine is Unknown. The Nodes report a while after
// the API server is back. Then etcd is killed and started again.
func TestOutage_LongerThanHealthTimeout_NoMachineReplaced(t *testing.T) {
	t.Parallel()
	own := ownHouse(t, shortGrace)
	o := withShortLease(fastOptions())
	o.Outage = true
	o.AllowDenied = func(r controlplane.Request) bool { return r.Code == http.StatusForbidden } // an API server that starts knows no roles yet
	o.Flags = append(o.Flags, "--machine-safety-apiserver-statuscheck-timeout=10s", "--machine-safety-apiserver-statuscheck-period=10s",
		"--machine-safety-hold-percent=0") // so that the freeze alone saves the machines
	s := own.Set(t, "long-outage", o)
	manager := s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 30, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: outageHealthTimeout}}
	deploy(t, s, d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	restarts := make(chan int, 1)
	go func() { restarts <- manager.Supervise(ctx) }()
	uids := map[types.UID]bool{}
	for _, m := range machines(t, s) {
		uids[m.UID] = true
		s.Nodes.Silence(s.NodeName(m.Name), true)
	}
	s.Wait(t, shortGrace+patience, "all are Unknown", allIn(s, v1alpha1.MachineUnknown))

	require.NoError(t, own.ControlPlane.StopAPIServer(t.Context()))
	pauseFor(t, longOutage)
	require.NoError(t, own.ControlPlane.StartAPIServer(t.Context()))
	pauseFor(t, slowReport)
	for _, m := range s.Cloud.Snapshot().VMs {
		s.Nodes.Silence(m.NodeName, false)
	}
	s.Wait(t, patience, "all run after the outage of the API server", allIn(s, v1alpha1.MachineRunning))
	noneReplaced(t, s, uids)

	require.NoError(t, own.ControlPlane.KillEtcd())
	pauseFor(t, outageHealthTimeout)
	require.NoError(t, own.ControlPlane.StartEtcd(t.Context()))
	s.Wait(t, patience, "all is as before", s.Complete("workers"))
	s.Wait(t, patience, "all run after the outage of etcd", allIn(s, v1alpha1.MachineRunning))
	pauseFor(t, outageHealthTimeout) // what was decided on the way would show by now
	s.Wait(t, patience, "all still run", allIn(s, v1alpha1.MachineRunning))
	noneReplaced(t, s, uids)
	cancel()
	t.Logf("the manager was started again %d times", <-restarts)
	removeAll(t, s)
}

// pauseFor lets time pass, until the test ends at the latest.
func pauseFor(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
