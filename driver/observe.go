// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/codes"
)

// A Call is one call of a [Driver] that has ended. It holds nothing secret.
type Call struct {
	// Operation that was called.
	Operation Operation
	// Namespace of the machine, or of the class if the call is about no machine.
	Namespace string
	// Machine is the name of the machine; empty if the call is about none.
	Machine string
	// Class is the name of the class; empty if the call is about none.
	Class string
	// Start is when the call began.
	Start time.Time
	// Duration is how long it took.
	Duration time.Duration
	// Code is codes.Of(Err).
	Code codes.Code
	// Err is what the driver returned.
	Err error
}

// String renders the call on one line. Its form may change.
func (c Call) String() string {
	t := target{op: c.Operation, namespace: c.Namespace, machine: c.Machine, class: c.Class}
	return fmt.Sprintf("%s: %s after %s", t, c.Code, c.Duration)
}

// Observe returns d with a function that is called after every call has ended, in the
// goroutine of the call, for metrics, logs and traces. It changes neither responses nor
// errors. tell must be safe for use by multiple goroutines, and fast: the call waits for it.
//
// Times are read from c; nil means the real clock. A nil tell does nothing. A nil d gives a driver that fails with Internal. Put Observe around
// [WithDeadline], so that the code of a call that ran out of time is the one
// that the caller sees.
func Observe(d Driver, tell func(Call), c clock.PassiveClock) Driver {
	if tell == nil {
		tell = func(Call) {}
	}
	if c == nil {
		c = clock.RealClock{}
	}
	return wrap(d, func(ctx context.Context, t target, run func(context.Context) error) error {
		start := c.Now()
		err := run(ctx)
		tell(Call{
			Operation: t.op,
			Namespace: t.namespace,
			Machine:   t.machine,
			Class:     t.class,
			Start:     start,
			Duration:  max(0, c.Since(start)),
			Code:      codes.Of(err),
			Err:       err,
		})
		return err
	})
}
