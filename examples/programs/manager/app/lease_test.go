// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// counted returns a driver that counts its calls.
func counted(d driver.Driver, calls *atomic.Int64) driver.Driver {
	return driver.Observe(d, func(driver.Call) { calls.Add(1) }, nil)
}

func TestPausedLeader_AfterDeadline_BeginsNoDriverCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		var pause, calls atomic.Int64
		p.gate.now = func() time.Time { return time.Now().Add(time.Duration(pause.Load())) }
		d := newSlow(r.cloud)
		p.driver = counted(d, &calls)
		p.start()
		r.class("c")
		r.machine("m1", "c")
		<-d.begun
		synctest.Wait() // the calls that have begun beside it have ended
		before := calls.Load()
		pause.Store(int64(time.Minute)) // SIGSTOP and SIGCONT: no timer has fired yet
		for i := range 10 {
			r.machine(fmt.Sprintf("more-%d", i), "c")
		}
		require.ErrorIs(t, p.result(), ErrLeaseLost)
		require.ErrorIs(t, <-d.err, context.Canceled, "what was in flight is cut")
		require.LessOrEqual(t, calls.Load(), before+1, "only the call in flight has ended")
		require.Contains(t, p.logs.String(), `"msg":"the lease was lost: no write and no driver call begins"`)
		require.Contains(t, p.logs.String(), `"calls":1,"inFlight":["CreateMachine of machine \"default/m1\"`)
		require.Empty(t, r.cloud.Snapshot().VMs)
	})
}

func TestLeader_LeaseTakenByHand_EndsAtOnce(t *testing.T) {
	steal := func(r *harness) {
		leases := r.control.Client().CoordinationV1().Leases(namespace)
		lease, err := leases.Get(r.Context(), "machine-controller", metav1.GetOptions{})
		require.NoError(r, err)
		thief := "thief"
		lease.Spec.HolderIdentity = &thief
		_, err = leases.Update(r.Context(), lease, metav1.UpdateOptions{})
		require.NoError(r, err)
	}
	remove := func(r *harness) {
		require.NoError(r, r.control.Client().CoordinationV1().Leases(namespace).Delete(r.Context(), "machine-controller", metav1.DeleteOptions{}))
	}
	cases := []struct {
		name   string
		take   func(*harness)
		watch  bool
		holder string
		why    string
	}{
		{"stolen, seen by the watch", steal, true, "thief", "held by"},
		{"stolen, without a watch", steal, false, "thief", "held by"},
		{"deleted, seen by the watch", remove, true, "", "deleted"},
		{"deleted, without a watch", remove, false, "", "deleted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				if !c.watch {
					defer r.control.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "watch", Resource: "leases"})()
				}
				p := r.prepare()
				var calls atomic.Int64
				p.driver = counted(r.cloud, &calls)
				p.start()
				r.class("c")
				r.machine("m", "c")
				r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
				began := time.Now()
				c.take(r)
				require.ErrorIs(t, p.result(), ErrLeaseLost)
				took, limit := time.Since(began), time.Duration(0)
				if !c.watch {
					limit = p.s.LeaderElection.RetryPeriod
				}
				require.LessOrEqual(t, took, limit)
				require.Contains(t, p.logs.String(), c.why)
				require.Equal(t, c.holder, r.holder(), "what is lost is neither taken again nor given back")
				require.Equal(t, !c.watch, strings.Contains(p.logs.String(), "the lease cannot be watched"))
			})
		})
	}
}
