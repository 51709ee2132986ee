// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// PanicError is the error of a pass or a driver call that panicked. The object is retried with
// back-off. Other objects are not affected.
type PanicError struct {
	// Value is the value of the panic.
	Value any
	// Stack is the stack of the goroutine at the panic.
	Stack []byte
	// Count is the number of panics of passes and driver calls since the begin of [Run], this one
	// included.
	Count int64
}

// Error returns the value and the count in one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic %d of this run: %v", e.Count, e.Value)
}

// caught returns the error for a recovered value. The recovering function must call it directly.
func (c *Config) caught(value any) *PanicError {
	if c.uncaught {
		panic(value)
	}
	stack := debug.Stack()
	if elsewhere, ok := value.(interface{ Stack() []byte }); ok { // the panic of another goroutine
		stack = elsewhere.Stack()
	}
	return &PanicError{Value: value, Stack: stack, Count: c.panics.Add(1)}
}

// try makes a pass. A panic becomes an error.
func (l *loop) try(ctx context.Context, key types.NamespacedName) (again time.Time, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = l.cfg.caught(value)
		}
	}()
	return l.pass(ctx, key)
}

// safeDriver returns d with calls whose panics become errors with code Internal. As after any other
// failure, the effect of such a call is unknown.
func (c *Config) safeDriver(d driver.Driver) driver.Driver {
	return driver.Wrap(d, func(ctx context.Context, call string, run func(context.Context) error) (err error) {
		defer func() {
			if value := recover(); value != nil {
				failure := c.caught(value)
				c.note(Note{Kind: "driver", Key: call, Err: failure})
				err = status.WrapError(codes.Internal, "the driver panicked; see the log of the manager for the stack", failure)
			}
		}()
		return run(ctx)
	})
}
