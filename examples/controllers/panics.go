// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// A PanicError is what a pass fails with that panicked. The object is tried again
// after a pause that grows; the others are not affected.
type PanicError struct {
	// Value is what the code panicked with.
	Value any
	// Stack is that of the goroutine at the panic.
	Stack []byte
	// Count is how many passes and driver calls of a [Run] have panicked so far,
	// this one included.
	Count int64
}

// Error returns the value and the count, in one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic, number %d of this run: %v", e.Count, e.Value)
}

// caught returns the error for what recover has returned. It has to be called by the
// function that recovers.
func (c *Config) caught(value any) *PanicError {
	if c.uncaught {
		panic(value)
	}
	return &PanicError{Value: value, Stack: debug.Stack(), Count: c.panics.Add(1)}
}

// try makes a pass that fails instead of panicking.
func (l *loop) try(ctx context.Context, key cache.ObjectName) (again time.Time, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = l.cfg.caught(value)
		}
	}()
	return l.pass(ctx, key)
}

// safeDriver is a driver whose calls fail with Internal instead of panicking: what
// a call has done before it panicked is not known, and has to be looked for as after
// any other failure.
type safeDriver struct {
	driver.Driver
	cfg *Config
}

// Unwrap returns the driver inside, for [driver.As].
func (d *safeDriver) Unwrap() driver.Driver { return d.Driver }

func safeCall[Req, Resp any](ctx context.Context, d *safeDriver, call func(context.Context, *Req) (*Resp, error), r *Req) (answer *Resp, err error) {
	defer func() {
		if value := recover(); value != nil {
			failure := d.cfg.caught(value)
			d.cfg.note(Note{Kind: "driver", Key: fmt.Sprint(r), Err: failure})
			answer, err = nil, status.WrapError(codes.Internal, "the driver panicked: the log of the manager has the stack", failure)
		}
	}()
	return call(ctx, r)
}

func (d *safeDriver) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return safeCall(ctx, d, d.Driver.CreateMachine, r)
}

func (d *safeDriver) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return safeCall(ctx, d, d.Driver.InitializeMachine, r)
}

func (d *safeDriver) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return safeCall(ctx, d, d.Driver.DeleteMachine, r)
}

func (d *safeDriver) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return safeCall(ctx, d, d.Driver.GetMachineStatus, r)
}

func (d *safeDriver) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return safeCall(ctx, d, d.Driver.ListMachines, r)
}

func (d *safeDriver) GetVolumeIDs(ctx context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return safeCall(ctx, d, d.Driver.GetVolumeIDs, r)
}
