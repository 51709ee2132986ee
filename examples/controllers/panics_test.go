// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// newConfig returns a complete Config, and a function that returns the errors which its observer has
// received.
func newConfig(t *testing.T, d driver.Driver) (cfg *Config, told func() []Note) {
	t.Helper()
	control, machines := machinetest.New(draintest.Options{})
	var mu sync.Mutex
	var notes []Note
	cfg = &Config{Machines: machines, Control: control.Client(), Driver: d, Workers: 1, Observe: func(n Note) {
		mu.Lock()
		defer mu.Unlock()
		if n.Err != nil {
			notes = append(notes, n)
		}
	}}
	require.NoError(t, cfg.complete())
	return cfg, func() []Note {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(notes)
	}
}

func TestLoop_PassPanics_RetriesWithBackoffAndOthersContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, told := newConfig(t, drivertest.NewCloud(drivertest.CloudOptions{}))
		var bad []time.Time
		good := 0
		l := newLoop(cfg, "machine", func(_ context.Context, key types.NamespacedName) (time.Time, error) {
			if key.Name == "bad" {
				bad = append(bad, time.Now())
				_ = []int{}[len(key.Name)]
			}
			good++
			return time.Time{}, nil
		})
		l.queue.Add(types.NamespacedName{Namespace: "n", Name: "bad"})
		l.queue.Add(types.NamespacedName{Namespace: "n", Name: "good"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.run(ctx) }()
		time.Sleep(10 * time.Second) // in the time of the bubble
		cancel()
		<-done

		require.Equal(t, 1, good)
		require.Greater(t, len(bad), 5)
		require.Less(t, len(bad), 20, "10 s of a back-off that doubles")
		for i := 2; i < len(bad); i++ {
			require.Greater(t, bad[i].Sub(bad[i-1]), bad[i-1].Sub(bad[i-2]))
		}
		require.Len(t, told(), len(bad))
		for i, n := range told() {
			var panicked *PanicError
			require.ErrorAs(t, n.Err, &panicked)
			require.Equal(t, "n/bad", n.Key)
			require.EqualValues(t, i+1, panicked.Count)
			require.Contains(t, string(panicked.Stack), "TestLoop_PassPanics", "the stack of the panic")
			require.ErrorContains(t, n.Err, "index out of range [3]")
		}
	})
}

// panicking is a driver that creates a VM and then panics.
type panicking struct{ driver.Driver }

func (d panicking) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	_, _ = d.Driver.CreateMachine(ctx, r)
	panic("after the fact")
}

func (d panicking) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	panic("at once")
}

func TestDriver_Panics_CallFailsWithInternal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := panicking{drivertest.NewCloud(drivertest.CloudOptions{})}
		for name, d := range map[string]driver.Driver{"alone": inner, "in a goroutine of its own": driver.WithDeadline(inner, driver.Timeouts{})} {
			cfg, told := newConfig(t, d)
			answer, err := cfg.Driver.ListMachines(t.Context(), &driver.ListMachinesRequest{})
			require.Nil(t, answer)
			require.Equal(t, codes.Internal, codes.Of(err))
			require.NotContains(t, err.Error(), "at once", "the panic value is only in the log")
			require.Len(t, told(), 1)
			require.Equal(t, "driver", told()[0].Kind)
			var panicked *PanicError
			require.ErrorAs(t, told()[0].Err, &panicked)
			require.ErrorContains(t, panicked, "panic 1 of this run: at once")
			require.Contains(t, string(panicked.Stack), "panicking.ListMachines", name)
		}
	})
}

func TestMachine_DriverPanicsAfterCreate_NoSecondVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := drivertest.NewCloud(drivertest.CloudOptions{})
		cfg, told := newConfig(t, panicking{cloud})
		cfg.Policy = machine.DefaultPolicy()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, *cfg) }()
		api := cfg.Machines.MachineV1alpha1()
		_, err := cfg.Control.CoreV1().Secrets("n").Create(ctx, cloud.Secret("n", "c"), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = api.MachineClasses("n").Create(ctx, cloud.MachineClass("n", "c"), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = api.Machines("n").Create(ctx, &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute) // in the time of the bubble
		synctest.Wait()
		m, err := api.Machines("n").Get(ctx, "m", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, v1alpha1.MachineAvailable, m.Status.CurrentStatus.Phase, "it searched for the VM of the call")
		require.Len(t, cloud.Snapshot().VMs, 1)
		require.NotEmpty(t, told())
		cancel()
		require.NoError(t, <-done)
	})
}
