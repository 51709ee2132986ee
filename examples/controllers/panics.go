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

// safeDriver returns d with calls that fail with Internal instead of panicking. What a call
// has done before it panicked is not known, and has to be looked for as after any other
// failure.
func (c *Config) safeDriver(d driver.Driver) driver.Driver {
	return driver.Wrap(d, func(ctx context.Context, call string, run func(context.Context) error) error {
		return c.guard(call, func() error { return run(ctx) })
	})
}

// guard makes a call of the driver that fails with Internal instead of panicking.
func (c *Config) guard(call string, run func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			failure := c.caught(value)
			c.note(Note{Kind: "driver", Key: call, Err: failure})
			err = status.WrapError(codes.Internal, "the driver panicked: the log of the manager has the stack", failure)
		}
	}()
	return run()
}
