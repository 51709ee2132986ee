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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// script is a driver with all optional interfaces that does the same in every call and always returns a response.
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

func (s script) ListSideResources(ctx context.Context, _ *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	return &driver.ListSideResourcesResponse{}, s(ctx, driver.OpListSideResources)
}

func (s script) DeleteSideResource(ctx context.Context, _ *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	return &driver.DeleteSideResourceResponse{}, s(ctx, driver.OpDeleteSideResource)
}

// idle is a driver whose calls succeed at once.
var idle = script(func(context.Context, driver.Operation) error { return nil })

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
		side := driver.SideResource{MachineName: m.Name}
		for name, value := range map[string]any{"Machine": m, "MachineClass": class, "Resource": side} {
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

// objects returns the objects of a request with secrets in every field.
func objects() (*v1alpha1.Machine, *v1alpha1.MachineClass, *corev1.Secret) {
	meta := metav1.ObjectMeta{Namespace: "shoot", Name: "small"}
	m := &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{ProviderID: "aws:///i-1"}}
	m.Namespace, m.Name = "shoot", "m-1"
	text, data := map[string]string{"password": confidential}, map[string][]byte{"userData": []byte(confidential)}
	return m, &v1alpha1.MachineClass{ObjectMeta: meta, ProviderSpec: runtime.RawExtension{Raw: []byte(confidential)}},
		&corev1.Secret{ObjectMeta: meta, Data: data, StringData: text}
}

func TestWithDeadline_EveryCall_HasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := script(func(ctx context.Context, _ driver.Operation) error {
			<-ctx.Done()
			return status.WrapError(codes.Internal, "request failed", ctx.Err())
		})
		limits := driver.Timeouts{Default: time.Hour, CreateMachine: time.Minute, ListMachines: 5 * time.Second}
		d := driver.WithDeadline(hanging, limits)
		m, class, _ := objects()
		begin := time.Now()
		answers, errs := callAll(t.Context(), d, m, class)
		require.Equal(t, time.Minute+4*time.Hour+5*time.Second, time.Since(begin))
		for i, err := range errs {
			op := driver.Operations()[i]
			require.Equal(t, codes.DeadlineExceeded, codes.Of(err), op)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, fmt.Sprintf("did not end within %s: request failed", limits.Of(op)))
			require.Contains(t, answers[i], "kept", "the response next to the error is passed on")
		}
		require.ErrorContains(t, errs[0], `CreateMachine of machine "shoot/m-1" did not end within 1m0s: request failed`)
	})
}

func TestWithDeadline_Result_IsPassedOn(t *testing.T) {
	own := errors.New("own")
	fail := script(func(context.Context, driver.Operation) error { return own })
	late := script(func(context.Context, driver.Operation) error {
		time.Sleep(time.Minute + 9*time.Second)
		return nil
	})
	wait := script(func(ctx context.Context, _ driver.Operation) error {
		<-ctx.Done()
		return own
	})
	for name, tt := range map[string]struct {
		do                 script
		deadline, canceled time.Duration // of the context of the caller
		want               codes.Code
		text               string
	}{
		"an error in time":                   {fail, time.Hour, time.Hour, codes.Unknown, "own"},
		"a success that is a little late":    {late, time.Hour, time.Hour, codes.OK, ""},
		"the earlier deadline of the caller": {wait, 1, time.Hour, codes.DeadlineExceeded, "before the deadline of its caller: own"},
		"a canceled call":                    {wait, time.Hour, 1, codes.Canceled, "was canceled by its caller: own"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			defer time.AfterFunc(tt.canceled, cancel).Stop()
			resp, err := driver.WithDeadline(tt.do, driver.Timeouts{Default: time.Minute}).CreateMachine(ctx, nil)
			cancel()
			require.Equal(t, tt.want, codes.Of(err), name)
			require.Equal(t, "kept", resp.LastKnownState, name)
			if err != nil {
				require.ErrorIs(t, err, own, name)
				require.ErrorContains(t, err, tt.text, name)
			}
		})
	}
}

func TestTimeouts_Of_IsPositive(t *testing.T) {
	set := func(limits ...time.Duration) driver.Timeouts {
		return driver.Timeouts{
			CreateMachine: limits[0], InitializeMachine: limits[1], DeleteMachine: limits[2],
			GetMachineStatus: limits[3], ListMachines: limits[4], GetVolumeIDs: limits[5], Default: limits[6],
		}
	}
	for i, op := range append(driver.Operations(), "Unheard") {
		require.Equal(t, time.Duration(i+1), set(1, 2, 3, 4, 5, 6, 7).Of(op))
		require.Equal(t, time.Duration(7), set(-1, -1, -1, -1, -1, -1, 7).Of(op))
		require.Equal(t, driver.DefaultTimeout, set(-1, -1, -1, -1, -1, -1, -1).Of(op))
		require.Equal(t, driver.DefaultTimeout, driver.Timeouts{}.Of(op))
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
	m, class, _ := objects()
	begin := clk.Now()
	answers, errs := callAll(t.Context(), d, m, class)
	require.Same(t, failure, errs[0])
	for _, a := range answers {
		require.Contains(t, a, "kept")
	}
	want := make([]driver.Call, 6)
	for i, op := range driver.Operations() {
		start := begin.Add(time.Duration(i) * time.Second)
		want[i] = driver.Call{
			Operation: op, Namespace: "shoot", Machine: "m-1", Class: "small", Start: start, Duration: time.Second,
		}
	}
	want[0].Code, want[0].Err = codes.ResourceExhausted, failure
	want[4].Machine = ""
	want[5].Namespace, want[5].Machine, want[5].Class = "", "", ""
	require.Empty(t, cmp.Diff(want, calls, cmpopts.EquateErrors()))
	require.Equal(t, `GetVolumeIDs: OK after 1s`, calls[5].String())
}

func TestWrap_NilDriver_FailsWithInternal(t *testing.T) {
	for _, d := range []driver.Driver{
		driver.WithDeadline(nil, driver.Timeouts{}),
		driver.Observe(nil, nil, nil),
		driver.Observe((*script)(nil), nil, nil),
	} {
		_, errs := callAll(t.Context(), d, nil, nil)
		for _, err := range errs {
			require.Equal(t, codes.Internal, codes.Of(err))
		}
	}
}

func TestAnswer_ResponseAndError_NeitherIsAFailure(t *testing.T) {
	type response = driver.DeleteMachineResponse
	empty, failed := &response{}, errors.New("failed")
	for _, c := range []struct {
		response *response
		err      error
		code     codes.Code
	}{{empty, nil, codes.OK}, {empty, failed, codes.Unknown}, {nil, failed, codes.Unknown}, {nil, nil, codes.Internal}} {
		got, err := driver.Answer(c.response, c.err)
		require.Same(t, c.response, got)
		require.Equal(t, c.code, codes.Of(err))
	}
}
