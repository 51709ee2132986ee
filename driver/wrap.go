// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"sync/atomic"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// target names the operation, machine and class of a call. It has no secrets.
type target struct {
	op                        Operation
	namespace, machine, class string
}

// aim returns the target of a request. Both objects may be nil.
func aim(op Operation, m *v1alpha1.Machine, class *v1alpha1.MachineClass) target {
	t := target{op: op}
	if class != nil {
		t.namespace, t.class = class.Namespace, class.Name
	}
	if m != nil {
		t.namespace, t.machine = m.Namespace, m.Name
	}
	return t
}

// around is called for every call of a driver. It calls run once and returns the error of the
// call.
type around func(ctx context.Context, t target, run func(context.Context) error) error

// wrapped is a Driver with a function around every call.
type wrapped struct {
	next   Driver
	around around
	calls  *abandonedCalls // of WithDeadline; otherwise nil
}

// Wrap returns d with a function around every call. around calls run at most once, with the
// context of the call, and returns the error of the call. It must be safe for use by multiple
// goroutines and not nil. call names the operation and its machine or class, without secrets.
// Responses are passed on, also with an error. A nil d becomes a driver that fails with
// Internal.
func Wrap(d Driver, around func(ctx context.Context, call string, run func(context.Context) error) error) Driver {
	return wrap(d, func(ctx context.Context, t target, run func(context.Context) error) error {
		return around(ctx, t.String(), run)
	})
}

// wrap returns d with a function around every call. A nil d becomes a driver that fails.
func wrap(d Driver, a around) *wrapped {
	if isNil(d) {
		d = missing{}
	}
	return &wrapped{next: d, around: a}
}

// Unwrap returns the wrapped driver, for [As].
func (w *wrapped) Unwrap() Driver { return w.next }

// pass makes one call through the function of w. It returns the response of the driver, also
// with an error, and none for a call that has not ended.
func pass[Req, Resp any](ctx context.Context, w *wrapped, t target, call func(context.Context, Req) (Resp, error), req Req) (Resp, error) {
	var answer atomic.Pointer[Resp] // an abandoned call may still write it
	err := w.around(ctx, t, func(ctx context.Context) error {
		resp, err := call(ctx, req)
		answer.Store(&resp)
		return err
	})
	if resp := answer.Load(); resp != nil {
		return *resp, err
	}
	var none Resp
	return none, err
}

func (w *wrapped) CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error) {
	t := target{op: OpCreateMachine}
	if req != nil {
		t = aim(t.op, req.Machine, req.MachineClass)
	}
	return pass(ctx, w, t, w.next.CreateMachine, req)
}

func (w *wrapped) InitializeMachine(ctx context.Context, req *InitializeMachineRequest) (*InitializeMachineResponse, error) {
	t := target{op: OpInitializeMachine}
	if req != nil {
		t = aim(t.op, req.Machine, req.MachineClass)
	}
	return pass(ctx, w, t, w.next.InitializeMachine, req)
}

func (w *wrapped) DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	t := target{op: OpDeleteMachine}
	if req != nil {
		t = aim(t.op, req.Machine, req.MachineClass)
	}
	return pass(ctx, w, t, w.next.DeleteMachine, req)
}

func (w *wrapped) GetMachineStatus(ctx context.Context, req *GetMachineStatusRequest) (*GetMachineStatusResponse, error) {
	t := target{op: OpGetMachineStatus}
	if req != nil {
		t = aim(t.op, req.Machine, req.MachineClass)
	}
	return pass(ctx, w, t, w.next.GetMachineStatus, req)
}

func (w *wrapped) ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error) {
	t := target{op: OpListMachines}
	if req != nil {
		t = aim(t.op, nil, req.MachineClass)
	}
	return pass(ctx, w, t, w.next.ListMachines, req)
}

func (w *wrapped) GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return pass(ctx, w, target{op: OpGetVolumeIDs}, w.next.GetVolumeIDs, req)
}

// missing is the driver for a nil Driver. Every call fails with Internal.
type missing struct{}

func errMissing() error { return status.Error(codes.Internal, "there is no driver") }

func (missing) CreateMachine(context.Context, *CreateMachineRequest) (*CreateMachineResponse, error) {
	return nil, errMissing()
}

func (missing) InitializeMachine(context.Context, *InitializeMachineRequest) (*InitializeMachineResponse, error) {
	return nil, errMissing()
}

func (missing) DeleteMachine(context.Context, *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return nil, errMissing()
}

func (missing) GetMachineStatus(context.Context, *GetMachineStatusRequest) (*GetMachineStatusResponse, error) {
	return nil, errMissing()
}

func (missing) ListMachines(context.Context, *ListMachinesRequest) (*ListMachinesResponse, error) {
	return nil, errMissing()
}

func (missing) GetVolumeIDs(context.Context, *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return nil, errMissing()
}
