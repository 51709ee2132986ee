// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// target says what a call is about: enough to talk about it, nothing secret.
type target struct {
	op                        Operation
	namespace, machine, class string
}

// aim makes a target of what is in a request; both objects may be nil.
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

// around surrounds every call of a driver with the same thing. It calls run
// exactly once with the context to use, and returns the error to return.
type around func(ctx context.Context, t target, run func(context.Context) error) error

// wrapped is a Driver with something around every call.
type wrapped struct {
	next   Driver
	around around
}

// Wrap returns d with a function around every call. around has to call run at most once, with
// the context of the call, and returns the error of the call. It must be safe for use by
// multiple goroutines. call names the operation and the machine or class that it is about; it
// holds nothing secret. The response of the driver is passed on, also next to an error. A nil
// d gives a driver that fails with Internal; around must not be nil.
func Wrap(d Driver, around func(ctx context.Context, call string, run func(context.Context) error) error) Driver {
	return wrap(d, func(ctx context.Context, t target, run func(context.Context) error) error {
		return around(ctx, t.String(), run)
	})
}

// wrap returns d with something around every call. A nil d becomes a driver
// that fails.
func wrap(d Driver, a around) Driver {
	if isNil(d) {
		d = missing{}
	}
	return &wrapped{next: d, around: a}
}

// Unwrap returns the driver inside, for [As].
func (w *wrapped) Unwrap() Driver { return w.next }

// pass carries one call and its response through an around. Whatever response
// the driver gave is returned, next to an error too.
func pass[Req, Resp any](ctx context.Context, w *wrapped, t target, call func(context.Context, Req) (Resp, error), req Req) (Resp, error) {
	var resp Resp
	err := w.around(ctx, t, func(ctx context.Context) error {
		var err error
		resp, err = call(ctx, req)
		return err
	})
	return resp, err
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

// missing is what a nil Driver becomes: every call fails with Internal, so that
// nothing is concluded from it.
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
