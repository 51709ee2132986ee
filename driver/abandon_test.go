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

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

// deaf is a driver whose first call ignores its context until its end is closed.
type deaf struct {
	script
	end   chan struct{}
	calls atomic.Int64
}

func newDeaf() *deaf {
	d := &deaf{end: make(chan struct{})}
	d.script = func(context.Context, driver.Operation) error {
		if d.calls.Add(1) == 1 {
			<-d.end
		}
		return nil
	}
	return d
}

func TestWithDeadline_CallIgnoresItsContext_IsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newDeaf()
		d := driver.Observe(driver.WithDeadline(inner, driver.Timeouts{Default: time.Minute}), nil, nil)
		m, class, _ := objects()
		req := &driver.CreateMachineRequest{Machine: m, MachineClass: class}
		begin := time.Now()
		resp, err := d.CreateMachine(t.Context(), req)
		require.Equal(t, 70*time.Second, time.Since(begin), "the deadline and ten seconds")
		require.Nil(t, resp)
		require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var abandoned *driver.AbandonedError
		require.ErrorAs(t, err, &abandoned)
		want := driver.Call{Operation: driver.OpCreateMachine, Namespace: "shoot", Machine: "m-1", Class: "small", Start: begin}
		require.Equal(t, want, abandoned.Call)
		require.EqualError(t, abandoned, `CreateMachine of machine "shoot/m-1" has not ended since `+
			begin.UTC().Format(time.RFC3339)+` although its time is over; no other call is made until it ends`)
		require.ErrorContains(t, err, "message = ["+abandoned.Error()+"]")

		time.Sleep(time.Minute)
		want.Duration, want.Code = 130*time.Second, codes.DeadlineExceeded
		require.Equal(t, []driver.Call{want}, driver.Abandoned(d))

		close(inner.end)
		synctest.Wait()
		require.Empty(t, driver.Abandoned(d))
		resp, err = d.CreateMachine(t.Context(), req)
		require.NoError(t, err, "the next call is made")
		require.Equal(t, "kept", resp.LastKnownState)
	})
}

// TestAbandonedCall_UntilItEnds_NoOtherCallForTheMachine makes one abandoned call of each
// operation, and then all calls for the same and for another machine.
func TestAbandonedCall_UntilItEnds_NoOtherCallForTheMachine(t *testing.T) {
	ofMachine := func(op driver.Operation) bool {
		return strings.Contains(string(op), "Machine") && op != driver.OpListMachines || op == driver.OpDeleteSideResource
	}
	all := append(driver.Operations(), driver.OpListSideResources, driver.OpDeleteSideResource)
	check := func(t *testing.T, hung, other driver.Operation) {
		inner := newDeaf()
		defer close(inner.end)
		d := driver.WithDeadline(inner, driver.Timeouts{Default: time.Minute})
		m, class, _ := objects()
		_, err := call(t.Context(), d, hung, m, class)
		require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
		begin := time.Now()
		_, err = call(t.Context(), d, other, m, class)
		if hung == other || ofMachine(hung) && ofMachine(other) {
			var abandoned *driver.AbandonedError
			require.ErrorAs(t, err, &abandoned)
			require.Equal(t, hung, abandoned.Call.Operation)
			require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
			require.Zero(t, time.Since(begin), "at once")
			require.EqualValues(t, 1, inner.calls.Load())
		} else {
			require.NoError(t, err)
		}
		if hung != driver.OpGetVolumeIDs { // it has neither
			m.Name, class.Name = "m-2", "large"
			_, err = call(t.Context(), d, other, m, class)
			require.NoError(t, err, "other machines and classes are not affected")
		}
	}
	for _, hung := range all {
		for _, other := range all {
			t.Run(fmt.Sprintf("%s, then %s", hung, other), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { check(t, hung, other) })
			})
		}
	}
}

func TestWithDeadline_CanceledCallIgnoresIt_IsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newDeaf()
		d := driver.WithDeadline(inner, driver.Timeouts{})
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
