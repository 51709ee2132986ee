// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// deaf is a driver whose first call ignores its context, until its end is closed.
type deaf struct {
	end   chan struct{}
	calls atomic.Int64
}

func newDeaf() *deaf { return &deaf{end: make(chan struct{})} }

func (d *deaf) script() script {
	return func(context.Context, driver.Operation) error {
		if d.calls.Add(1) == 1 {
			<-d.end
			return errors.New("at last")
		}
		return nil
	}
}

func TestWithDeadline_CallIgnoresItsContext_IsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newDeaf()
		d := driver.Observe(driver.WithDeadline(inner.script(), driver.Timeouts{Default: time.Minute}), nil, nil)
		m, class := objects()
		begin := time.Now()
		resp, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: class})
		require.Equal(t, 70*time.Second, time.Since(begin), "the deadline and ten seconds")
		require.Nil(t, resp)
		require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var abandoned *driver.AbandonedError
		require.ErrorAs(t, err, &abandoned)
		want := driver.Call{Operation: driver.OpCreateMachine, Namespace: "shoot", Machine: "m-1", Class: "small", Start: begin}
		require.Empty(t, cmp.Diff(want, abandoned.Call))
		text := fmt.Sprintf(`CreateMachine of machine "shoot/m-1" has not ended since %s although its time is over; no other call is made until it ends`, begin.UTC().Format(time.RFC3339))
		require.EqualError(t, abandoned, text)
		require.ErrorContains(t, err, "message = ["+text+"]")

		time.Sleep(time.Minute)
		want.Duration, want.Code = 130*time.Second, codes.DeadlineExceeded
		require.Empty(t, cmp.Diff([]driver.Call{want}, driver.Abandoned(d)))

		close(inner.end)
		synctest.Wait()
		require.Empty(t, driver.Abandoned(d))
		resp, err = d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: class})
		require.NoError(t, err, "the next call is made")
		require.Equal(t, "kept", resp.LastKnownState)
	})
}

// TestAbandonedCall_UntilItEnds_NoOtherCallForTheMachine makes one abandoned call of each
// operation, and then all calls for the same and for another machine.
func TestAbandonedCall_UntilItEnds_NoOtherCallForTheMachine(t *testing.T) {
	of := map[driver.Operation]func(context.Context, driver.Driver, *v1alpha1.Machine, *v1alpha1.MachineClass) error{
		driver.OpListSideResources: func(ctx context.Context, d driver.Driver, _ *v1alpha1.Machine, class *v1alpha1.MachineClass) error {
			lister, _ := driver.As[driver.SideResourceLister](d)
			_, err := lister.ListSideResources(ctx, &driver.ListSideResourcesRequest{MachineClass: class})
			return err
		},
		driver.OpDeleteSideResource: func(ctx context.Context, d driver.Driver, m *v1alpha1.Machine, class *v1alpha1.MachineClass) error {
			deleter, _ := driver.As[driver.SideResourceDeleter](d)
			_, err := deleter.DeleteSideResource(ctx, &driver.DeleteSideResourceRequest{
				MachineClass: class, Resource: driver.SideResource{MachineName: m.Name},
			})
			return err
		},
	}
	for i, op := range driver.Operations() {
		of[op] = func(ctx context.Context, d driver.Driver, m *v1alpha1.Machine, class *v1alpha1.MachineClass) error {
			return calls(ctx, d, m, class)[i]()
		}
	}
	ofMachine := func(op driver.Operation) bool {
		return strings.Contains(string(op), "Machine") && op != driver.OpListMachines || op == driver.OpDeleteSideResource
	}
	for hung, hang := range of {
		for other, call := range of {
			t.Run(fmt.Sprintf("%s, then %s", hung, other), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					inner := newDeaf()
					d := driver.WithDeadline(deafSides{inner.script(), inner}, driver.Timeouts{Default: time.Minute})
					m, class := objects()
					require.Equal(t, codes.DeadlineExceeded, codes.Of(hang(t.Context(), d, m, class)))
					begin := time.Now()
					refused := hung == other || ofMachine(hung) && ofMachine(other)
					err := call(t.Context(), d, m, class)
					require.Equal(t, refused, err != nil, "%v", err)
					if refused {
						var abandoned *driver.AbandonedError
						require.ErrorAs(t, err, &abandoned)
						require.Equal(t, hung, abandoned.Call.Operation)
						require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
						require.Zero(t, time.Since(begin), "at once")
						require.EqualValues(t, 1, inner.calls.Load())
					}
					if hung != driver.OpGetVolumeIDs { // it has neither
						another, larger := m.DeepCopy(), class.DeepCopy()
						another.Name, larger.Name = "m-2", "large"
						require.NoError(t, call(t.Context(), d, another, larger), "other machines and classes are not affected")
					}
					close(inner.end)
				})
			})
		}
	}
}

// deafSides is a deaf driver with side resources.
type deafSides struct {
	script
	*deaf
}

func (d deafSides) ListSideResources(ctx context.Context, _ *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	return nil, d.script(ctx, "")
}

func (d deafSides) DeleteSideResource(ctx context.Context, _ *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	return nil, d.script(ctx, "")
}

func TestWithDeadline_CanceledCallIgnoresIt_IsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newDeaf()
		d := driver.WithDeadline(inner.script(), driver.Timeouts{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := d.ListMachines(ctx, nil)
		require.Equal(t, 11*time.Second, time.Since(begin))
		require.Equal(t, codes.Canceled, codes.Of(err))
		require.Len(t, driver.Abandoned(d), 1)
		close(inner.end)
	})
}

func TestWithDeadline_DriverPanics_CallerPanicsWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := false
		own := errors.New("own")
		d := driver.WithDeadline(script(func(context.Context, driver.Operation) error {
			if late {
				time.Sleep(time.Hour)
			}
			panic(own)
		}), driver.Timeouts{Default: time.Minute})
		value := func() (value any) {
			defer func() { value = recover() }()
			_, _ = d.ListMachines(t.Context(), nil)
			return nil
		}()
		err, ok := value.(interface {
			error
			Stack() []byte
		})
		require.True(t, ok)
		require.ErrorIs(t, err, own)
		require.EqualError(t, err, "own")
		require.Contains(t, string(err.Stack()), "TestWithDeadline_DriverPanics", "the stack of the driver")

		late = true
		_, failure := d.ListMachines(t.Context(), nil)
		require.Equal(t, codes.DeadlineExceeded, codes.Of(failure))
		time.Sleep(time.Hour)
		require.Empty(t, driver.Abandoned(d), "its panic has ended it")
	})
}

func TestWithDeadline_DriverEndsItsGoroutine_CallFails(t *testing.T) {
	d := driver.WithDeadline(script(func(context.Context, driver.Operation) error {
		runtime.Goexit()
		return nil
	}), driver.Timeouts{})
	_, err := d.ListMachines(t.Context(), nil)
	require.Equal(t, codes.Internal, codes.Of(err))
}

func TestAbandoned_OtherDrivers_None(t *testing.T) {
	require.Empty(t, driver.Abandoned(nil))
	require.Empty(t, driver.Abandoned(script(nil)))
	require.Empty(t, driver.Abandoned(driver.Observe(nil, nil, nil)))
}

// calls returns the calls of all operations, in the order of [driver.Operations].
func calls(ctx context.Context, d driver.Driver, m *v1alpha1.Machine, class *v1alpha1.MachineClass) []func() error {
	return []func() error{
		func() error {
			_, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class})
			return err
		},
		func() error {
			_, err := d.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: class})
			return err
		},
		func() error {
			_, err := d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: class})
			return err
		},
		func() error {
			_, err := d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class})
			return err
		},
		func() error {
			_, err := d.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class})
			return err
		},
		func() error { _, err := d.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{}); return err },
	}
}
