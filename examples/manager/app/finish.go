// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// finisher is a driver whose calls go on when the context of their caller ends,
// until a context of its own does: a call that is cut short may or may not have
// had its effect, and the next leader has to find out.
type finisher struct {
	calls context.Context //nolint:containedctx // it is what the type is about
	gate  *gate
	next  driver.Driver
}

// finishing returns d with calls that end with the context, not with that of
// their caller. None begins when its caller's has ended, or while the gate is shut.
func finishing(calls context.Context, g *gate, d driver.Driver) driver.Driver {
	return &finisher{calls, g, d}
}

// Unwrap returns the driver inside, for [driver.As].
func (f *finisher) Unwrap() driver.Driver { return f.next }

func finish[Req, Resp any](ctx context.Context, f *finisher, call func(context.Context, *Req) (*Resp, error), r *Req) (*Resp, error) {
	if ctx.Err() != nil {
		return nil, status.WrapError(codes.Canceled, "not begun: the manager stops", ctx.Err())
	}
	ended, err := f.gate.begin(fmt.Sprint(r))
	if err != nil {
		return nil, status.WrapError(codes.Canceled, "not begun: "+err.Error(), err)
	}
	defer ended()
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(f.calls, cancel)() //nolint:contextcheck // the one that ends calls
	return call(own, r)
}

func (f *finisher) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return finish(ctx, f, f.next.CreateMachine, r)
}

func (f *finisher) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return finish(ctx, f, f.next.InitializeMachine, r)
}

func (f *finisher) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return finish(ctx, f, f.next.DeleteMachine, r)
}

func (f *finisher) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return finish(ctx, f, f.next.GetMachineStatus, r)
}

func (f *finisher) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return finish(ctx, f, f.next.ListMachines, r)
}

func (f *finisher) GetVolumeIDs(ctx context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return finish(ctx, f, f.next.GetVolumeIDs, r)
}
