// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// endlessCloud is a cloud whose CreateMachine for some machines ignores its context, until it is told
// to end. It counts the calls by machine.
type endlessCloud struct {
	*drivertest.Cloud
	end   chan struct{}
	mu    sync.Mutex
	calls map[string]int
}

func (c *endlessCloud) called(machine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[machine]++
}

func (c *endlessCloud) of(machine string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[machine]
}

func (c *endlessCloud) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	c.called(r.Machine.Name)
	if strings.HasPrefix(r.Machine.Name, "hung") {
		<-c.end
	}
	return c.Cloud.CreateMachine(ctx, r)
}

func (c *endlessCloud) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	c.called(r.Machine.Name)
	return c.Cloud.GetMachineStatus(ctx, r)
}

func (c *endlessCloud) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	c.called(r.Machine.Name)
	return c.Cloud.DeleteMachine(ctx, r)
}

func TestManager_CallsNeverEnd_OtherMachinesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarnessWith(t, time.Second)
		inner := &endlessCloud{Cloud: r.cloud, end: make(chan struct{}), calls: map[string]int{}}
		start := func() *process {
			s := options.NewManagerServer()
			s.ConcurrentSyncs, s.DriverTimeouts = 3, driver.Timeouts{CreateMachine: time.Minute}
			p := r.prepareAs(s)
			s.LeaderElection.LeaseDuration, s.LeaderElection.RenewDeadline, s.LeaderElection.RetryPeriod = 15*time.Second, 10*time.Second, 2*time.Second
			p.gate.counts, p.driver = s.LeaderElection.RenewDeadline, inner
			return p.start()
		}
		p := start()
		r.class("c")
		began := time.Now()
		for i := range 3 { // as many as workers
			r.machine(fmt.Sprintf("hung-%d", i), "c")
		}
		time.Sleep(5 * time.Second)
		r.machine("m", "c")
		require.Eventually(t, func() bool { return r.phase("m") == v1alpha1.MachineRunning }, 2*time.Minute, time.Second)
		require.Less(t, time.Since(began), 80*time.Second, "the deadline of a minute, and ten seconds")
		time.Sleep(time.Minute)
		require.Contains(t, p.scrape(), `machinist_driver_calls_abandoned{operation="CreateMachine"} 3`)
		hung, err := r.machines.MachineV1alpha1().Machines(namespace).Get(t.Context(), "hung-0", metav1.GetOptions{})
		require.NoError(t, err)
		require.Contains(t, hung.Status.LastOperation.Description, `CreateMachine of machine "default/hung-0" has not ended since`)
		require.Equal(t, "DeadlineExceeded", hung.Status.LastOperation.ErrorCode)

		calls := inner.of("hung-0") + inner.of("hung-1")
		require.NoError(t, r.machines.MachineV1alpha1().Machines(namespace).Delete(t.Context(), "hung-1", metav1.DeleteOptions{}))
		time.Sleep(time.Until(began.Add(16 * time.Minute)))
		require.Equal(t, [2]int{good, good}, p.health(), "it may still end")
		time.Sleep(10 * time.Minute)
		require.Equal(t, calls, inner.of("hung-0")+inner.of("hung-1"), "no other call for these machines")
		require.Equal(t, v1alpha1.MachineCrashLoopBackOff, r.phase("hung-0"), "not failed at the creation timeout")
		require.Equal(t, v1alpha1.MachineCrashLoopBackOff, r.phase("hung-1"), "its deletion waits")
		require.Equal(t, [2]int{bad, good}, p.health(), "a restart is needed")

		p.end()
		require.ErrorIs(t, p.result(), errStuck)
		require.Equal(t, p.identity, r.holder(), "the lease is not given back while the calls run")
		close(inner.end) // as the end of the process does
		next := start()
		require.Eventually(t, func() bool { return r.phase("hung-1") == "gone" }, 5*time.Minute, time.Second)
		require.Equal(t, [2]int{good, good}, next.health())
	})
}

func TestHealth_AbandonedCall_FailsWhenOnlyARestartEndsIt(t *testing.T) {
	h := newHealth(metrics.New(metrics.Options{}), newGate(options.LeaderElection{}).lost)
	var calls []driver.Call
	h.watchCalls(driver.Timeouts{CreateMachine: time.Hour}, func() []driver.Call { return calls })
	require.NoError(t, h.healthy())
	call := func(op driver.Operation, machine string, lasts time.Duration) driver.Call {
		return driver.Call{Operation: op, Namespace: "n", Machine: machine, Duration: lasts, Code: 4}
	}
	calls = []driver.Call{call(driver.OpCreateMachine, "a", 75*time.Minute), call(driver.OpDeleteMachine, "b", 25*time.Minute)}
	require.NoError(t, h.healthy())
	require.Contains(t, h.details(), `abandoned: CreateMachine of machine "n/a": DeadlineExceeded after 1h15m0s`)
	calls[1].Duration += time.Second
	require.EqualError(t, h.healthy(), `a call of the driver does not end, and no other call is made for its machine until a restart: DeleteMachine of machine "n/b": DeadlineExceeded after 25m1s`)
	calls = nil
	require.NoError(t, h.healthy(), "it has ended")
}
