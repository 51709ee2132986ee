// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// DefaultTimeout is the timeout of a call if [Timeouts] has no other.
const DefaultTimeout = 10 * time.Minute

// Timeouts has the timeout of each operation. A field of zero or less means Default, and a
// Default of zero or less means [DefaultTimeout]. The zero Timeouts is ready for use.
type Timeouts struct {
	// Default is the timeout of operations whose field is not set.
	Default time.Duration
	// CreateMachine bounds a call of CreateMachine.
	CreateMachine time.Duration
	// InitializeMachine bounds a call of InitializeMachine.
	InitializeMachine time.Duration
	// DeleteMachine bounds a call of DeleteMachine.
	DeleteMachine time.Duration
	// GetMachineStatus bounds a call of GetMachineStatus.
	GetMachineStatus time.Duration
	// ListMachines bounds a call of ListMachines.
	ListMachines time.Duration
	// GetVolumeIDs bounds a call of GetVolumeIDs.
	GetVolumeIDs time.Duration
}

// Of returns the timeout of op, which is positive. An unknown operation has the default.
func (t Timeouts) Of(op Operation) time.Duration {
	var own time.Duration
	switch op {
	case OpCreateMachine:
		own = t.CreateMachine
	case OpInitializeMachine:
		own = t.InitializeMachine
	case OpDeleteMachine:
		own = t.DeleteMachine
	case OpGetMachineStatus:
		own = t.GetMachineStatus
	case OpListMachines:
		own = t.ListMachines
	case OpGetVolumeIDs:
		own = t.GetVolumeIDs
	}
	for _, d := range []time.Duration{own, t.Default} {
		if d > 0 {
			return d
		}
	}
	return DefaultTimeout
}

// WithDeadline returns d with a deadline on the context of every call. An earlier deadline of
// the caller has priority.
//
// If the context has ended, the error of the call gets the code DeadlineExceeded or Canceled,
// because many drivers return Internal for a timeout. [errors.Is] and [errors.As] still find
// the error of the driver. A late success stays a success, and responses are passed on.
//
// A call that has not ended 10 seconds after its context is abandoned: it returns an
// [AbandonedError], and its goroutine continues. Until it ends, every other call for its machine, or
// the same operation for its class, returns that error without calling the driver, so that the driver
// never has two calls for one machine because of it. [Abandoned] returns such calls.
//
// Deadlines are in real time. A panic of the driver is passed on, with a value that has its stack
// in a method Stack() []byte; that of an abandoned call ends the call. A nil d becomes a driver that
// fails with Internal.
func WithDeadline(d Driver, t Timeouts) Driver {
	calls := &abandonedCalls{}
	w := wrap(d, func(ctx context.Context, target target, run func(context.Context) error) error {
		if err := calls.refuse(target); err != nil {
			return err
		}
		limit := t.Of(target.op)
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := calls.within(bounded, target, run)
		if err == nil || bounded.Err() == nil {
			return err
		}
		return overdue(ctx, bounded, target, limit, err)
	})
	w.calls = calls
	return w
}

// overdue returns the error of a call whose context has ended, either that of the caller or
// that with the deadline.
func overdue(caller, bounded context.Context, t target, limit time.Duration, err error) error {
	code, why := codes.DeadlineExceeded, fmt.Sprintf("did not end within %s", limit)
	switch {
	case errors.Is(bounded.Err(), context.Canceled):
		code, why = codes.Canceled, "was canceled by its caller"
	case caller.Err() != nil:
		why = "did not end before the deadline of its caller"
	}
	var abandoned *AbandonedError
	if errors.As(err, &abandoned) {
		return status.WrapError(code, abandoned.Error(), errors.Join(abandoned, bounded.Err()))
	}
	return status.WrapError(code, fmt.Sprintf("%s %s: %s", t, why, text(err)), errors.Join(err, bounded.Err()))
}

// text returns the message of an error without the form of a status.
func text(err error) string {
	if s, ok := err.(*status.Status); ok { //nolint:errorlint // only the outermost error
		return s.Message()
	}
	return err.Error()
}

// String returns the operation and its machine or class.
func (t target) String() string {
	switch {
	case t.machine != "":
		return fmt.Sprintf("%s of machine %q", t.op, key(t.namespace, t.machine))
	case t.class != "":
		return fmt.Sprintf("%s of class %q", t.op, key(t.namespace, t.class))
	default:
		return string(t.op)
	}
}
