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

// DefaultTimeout is how long a call may take if nobody says otherwise.
const DefaultTimeout = 10 * time.Minute

// Timeouts says how long each operation may take. A field that is zero or
// negative means Default; Default itself, if it is zero or negative, is
// [DefaultTimeout]. There is no way to say "for ever". The zero Timeouts is
// ready for use.
type Timeouts struct {
	// Default is for the operations whose own field is not set.
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

// Of returns how long op may take; always more than zero. An operation that it
// does not know gets the default.
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

// WithDeadline returns d with a deadline on the context of every call. A
// deadline of the caller that is earlier stays in force.
//
// An error which a call returns after its context has ended becomes
// DeadlineExceeded or Canceled, whichever ended it, whatever code the driver put
// on it: drivers tend to call a timeout Internal, and a verdict that was cut
// short is none. The driver's error stays reachable by errors.Is and errors.As.
// A success stays a success, however late, and a response is passed on in any
// case.
//
// The deadline is that of a context, and so in real time. A driver that ignores
// its context still takes as long as it likes: leaving it behind would leave a
// goroutine and a call that nobody knows of. A nil d gives a driver that fails
// with Internal.
func WithDeadline(d Driver, t Timeouts) Driver {
	return wrap(d, func(ctx context.Context, target target, run func(context.Context) error) error {
		limit := t.Of(target.op)
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := run(bounded)
		if err == nil || bounded.Err() == nil {
			return err
		}
		return overdue(ctx, bounded, target, limit, err)
	})
}

// overdue says that a call was ended by its context: the caller's own or the
// one that bounds it.
func overdue(caller, bounded context.Context, t target, limit time.Duration, err error) error {
	code, why := codes.DeadlineExceeded, fmt.Sprintf("did not end within %s", limit)
	switch {
	case errors.Is(bounded.Err(), context.Canceled):
		code, why = codes.Canceled, "was cancelled by its caller"
	case caller.Err() != nil:
		why = "did not end before the deadline of its caller"
	}
	return status.WrapError(code, fmt.Sprintf("%s %s: %s", t, why, text(err)), errors.Join(err, bounded.Err()))
}

// text returns the message of an error without the frame of a status around it.
func text(err error) string {
	if s, ok := err.(*status.Status); ok { //nolint:errorlint // only the outermost frame
		return s.Message()
	}
	return err.Error()
}

// String names the operation and what it is about.
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
