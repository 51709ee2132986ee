// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// script is a driver that does the same in every call and always returns a response.
type script func(ctx context.Context, op driver.Operation) error

func (s script) CreateMachine(ctx context.Context, _ *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return &driver.CreateMachineResponse{LastKnownState: "kept"}, s(ctx, driver.OpCreateMachine)
}

func (s script) InitializeMachine(ctx context.Context, _ *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return &driver.InitializeMachineResponse{ProviderID: "kept"}, s(ctx, driver.OpInitializeMachine)
}

func (s script) DeleteMachine(ctx context.Context, _ *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return &driver.DeleteMachineResponse{LastKnownState: "kept"}, s(ctx, driver.OpDeleteMachine)
}

func (s script) GetMachineStatus(ctx context.Context, _ *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return &driver.GetMachineStatusResponse{ProviderID: "kept"}, s(ctx, driver.OpGetMachineStatus)
}

func (s script) ListMachines(ctx context.Context, _ *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return &driver.ListMachinesResponse{MachineList: map[string]string{"kept": ""}}, s(ctx, driver.OpListMachines)
}

func (s script) GetVolumeIDs(ctx context.Context, _ *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{VolumeIDs: []string{"kept"}}, s(ctx, driver.OpGetVolumeIDs)
}

// call makes the call of an operation, and returns its response as text. Without a machine the request is
// nil.
func call(ctx context.Context, d any, op driver.Operation, m *v1alpha1.Machine, class *v1alpha1.MachineClass) (string, error) {
	method := reflect.ValueOf(d).MethodByName(op.String())
	if !method.IsValid() {
		sides, _ := driver.As[driver.SideResourceDeleter](d.(driver.Driver))
		method = reflect.ValueOf(sides).MethodByName(op.String())
	}
	req := reflect.Zero(method.Type().In(1))
	if m != nil {
		req = reflect.New(method.Type().In(1).Elem())
		for name, value := range map[string]any{"Machine": m, "MachineClass": class, "Resource": driver.SideResource{MachineName: m.Name}} {
			if field := req.Elem().FieldByName(name); field.IsValid() {
				field.Set(reflect.ValueOf(value))
			}
		}
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(ctx), req})
	err, _ := reflect.TypeAssert[error](out[1])
	return fmt.Sprintf("%+v", out[0]), err
}

// callAll makes one call of every operation, in the order of [driver.Operations].
func callAll(ctx context.Context, d driver.Driver, m *v1alpha1.Machine, class *v1alpha1.MachineClass) (answers []string, errs []error) {
	for _, op := range driver.Operations() {
		answer, err := call(ctx, d, op, m, class)
		answers, errs = append(answers, answer), append(errs, err)
	}
	return answers, errs
}

func objects() (*v1alpha1.Machine, *v1alpha1.MachineClass) {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1"}},
		&v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"}}
}

func TestWithDeadline_EveryCall_HasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := script(func(ctx context.Context, _ driver.Operation) error {
			<-ctx.Done()
			return status.WrapError(codes.Internal, "request failed", ctx.Err())
		})
		limits := driver.Timeouts{Default: time.Hour, CreateMachine: time.Minute, ListMachines: 5 * time.Second}
		d := driver.WithDeadline(hanging, limits)
		m, class := objects()
		begin := time.Now()
		answers, errs := callAll(t.Context(), d, m, class)
		require.Equal(t, time.Minute+4*time.Hour+5*time.Second, time.Since(begin))
		for i, err := range errs {
			op := driver.Operations()[i]
			require.Equal(t, codes.DeadlineExceeded, codes.Of(err), op)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Contains(t, err.Error(), fmt.Sprintf("did not end within %s: request failed", limits.Of(op)))
			require.Contains(t, answers[i], "kept", "the response next to the error is passed on")
		}
		require.EqualError(t, errs[0], `machine codes error: code = [DeadlineExceeded] message = [CreateMachine of machine "shoot/m-1" did not end within 1m0s: request failed]`)
		require.Contains(t, errs[4].Error(), `ListMachines of class "shoot/small" did not`)
		require.Contains(t, errs[5].Error(), `GetVolumeIDs did not`)
	})
}

func TestWithDeadline_Result_IsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := errors.New("own")
		for name, tt := range map[string]struct {
			do   script
			ctx  func(context.Context) (context.Context, context.CancelFunc)
			want codes.Code
			text string
		}{
			"an error in time stays as it is": {
				do:   func(context.Context, driver.Operation) error { return own },
				want: codes.Unknown, text: "own",
			},
			"a success stays a success a little late": {
				do:   func(context.Context, driver.Operation) error { time.Sleep(time.Minute + 9*time.Second); return nil },
				want: codes.OK,
			},
			"the earlier deadline of the caller holds": {
				do: func(ctx context.Context, _ driver.Operation) error { <-ctx.Done(); return own },
				ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
					return context.WithTimeout(ctx, time.Second)
				},
				want: codes.DeadlineExceeded, text: "did not end before the deadline of its caller: own",
			},
			"a canceled call says so": {
				do: func(ctx context.Context, _ driver.Operation) error { <-ctx.Done(); return own },
				ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
					ctx, cancel := context.WithCancel(ctx)
					time.AfterFunc(time.Second, cancel)
					return ctx, cancel
				},
				want: codes.Canceled, text: "was canceled by its caller: own",
			},
		} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if tt.ctx != nil {
				ctx, cancel = tt.ctx(ctx)
			}
			resp, err := driver.WithDeadline(tt.do, driver.Timeouts{Default: time.Minute}).CreateMachine(ctx, nil)
			cancel()
			require.Equal(t, tt.want, codes.Of(err), name)
			require.Equal(t, "kept", resp.LastKnownState, name)
			if err != nil {
				require.ErrorIs(t, err, own, name)
				require.ErrorContains(t, err, tt.text, name)
			}
		}
	})
}

func TestTimeouts_Of_IsPositive(t *testing.T) {
	for _, op := range append(driver.Operations(), "Unheard") {
		require.Equal(t, driver.DefaultTimeout, driver.Timeouts{}.Of(op))
		require.Equal(t, driver.DefaultTimeout, driver.Timeouts{
			Default: -1, CreateMachine: -1, InitializeMachine: -1, DeleteMachine: -1, GetMachineStatus: -1, ListMachines: -1, GetVolumeIDs: -1,
		}.Of(op))
		require.Equal(t, time.Second, driver.Timeouts{Default: time.Second}.Of(op))
	}
	all := driver.Timeouts{Default: 9, CreateMachine: 1, InitializeMachine: 2, DeleteMachine: 3, GetMachineStatus: 4, ListMachines: 5, GetVolumeIDs: 6}
	for i, op := range driver.Operations() {
		require.Equal(t, time.Duration(i+1), all.Of(op), op.String())
	}
}

func TestObserve_EveryCall_IsReported(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	failure := status.Error(codes.ResourceExhausted, "full")
	work := script(func(_ context.Context, op driver.Operation) error {
		clk.SetTime(clk.Now().Add(time.Second))
		if op == driver.OpCreateMachine {
			return failure
		}
		return nil
	})
	var calls []driver.Call
	d := driver.Observe(work, func(c driver.Call) { calls = append(calls, c) }, clk)
	m, class := objects()
	begin := clk.Now()
	answers, errs := callAll(t.Context(), d, m, class)
	require.Same(t, failure, errs[0])
	for _, a := range answers {
		require.Contains(t, a, "kept")
	}
	want := make([]driver.Call, 0, 6)
	for i, op := range driver.Operations() {
		want = append(want, driver.Call{Operation: op, Namespace: "shoot", Machine: "m-1", Class: "small",
			Start: begin.Add(time.Duration(i) * time.Second), Duration: time.Second})
	}
	want[0].Code, want[0].Err = codes.ResourceExhausted, failure
	want[4].Machine = ""
	want[5].Namespace, want[5].Machine, want[5].Class = "", "", ""
	require.Empty(t, cmp.Diff(want, calls, cmpopts.EquateErrors()))
	require.Equal(t, `CreateMachine of machine "shoot/m-1": ResourceExhausted after 1s`, calls[0].String())
	require.Equal(t, `ListMachines of class "shoot/small": OK after 1s`, calls[4].String())
	require.Equal(t, `GetVolumeIDs: OK after 1s`, calls[5].String())

	calls = nil
	callAll(t.Context(), d, nil, nil)
	for i, c := range calls {
		require.Equal(t, driver.Operations()[i], c.Operation)
		require.Empty(t, c.Machine+c.Class+c.Namespace)
	}
}

func TestWrap_NilDriver_FailsWithInternal(t *testing.T) {
	idle := script(func(context.Context, driver.Operation) error { return nil })
	for _, d := range []driver.Driver{
		driver.Observe(idle, nil, nil),
	} {
		_, errs := callAll(t.Context(), d, nil, nil)
		require.NoError(t, errors.Join(errs...))
	}
	for _, d := range []driver.Driver{
		driver.WithDeadline(nil, driver.Timeouts{}),
		driver.Observe(nil, nil, nil),
		driver.Observe((*optional)(nil), nil, nil),
	} {
		_, errs := callAll(t.Context(), d, nil, nil)
		for _, err := range errs {
			require.Equal(t, codes.Internal, codes.Of(err))
		}
	}
}

func TestWrap_EveryCall_PassesThroughTheFunction(t *testing.T) {
	var told []string
	d := driver.Wrap(script(func(context.Context, driver.Operation) error { return nil }),
		func(ctx context.Context, call string, run func(context.Context) error) error {
			told = append(told, call)
			return errors.Join(run(ctx), status.Error(codes.Aborted, "around"))
		})
	_, errs := callAll(t.Context(), d, nil, nil)
	require.Len(t, told, len(errs))
	for i, err := range errs {
		require.Equal(t, codes.Aborted, codes.Of(err), told[i])
	}
	require.Contains(t, told, "CreateMachine")
}

func TestAnswer_ResponseAndError_NeitherIsAFailure(t *testing.T) {
	type response = driver.DeleteMachineResponse
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		response *response
		err      error
		code     codes.Code
	}{
		"empty response":         {&response{}, nil, codes.OK},
		"response with an error": {&response{LastKnownState: "half-way"}, failed, codes.Unknown},
		"error":                  {nil, failed, codes.Unknown},
		"neither":                {nil, nil, codes.Internal},
	} {
		got, err := driver.Answer(c.response, c.err)
		require.Same(t, c.response, got, name)
		require.Equal(t, c.code, codes.Of(err), name)
	}
}
