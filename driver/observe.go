// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/codes"
)

// A Call is one call of a [Driver]: a finished one, or an abandoned one. It has no secrets.
type Call struct {
	// Operation that was called.
	Operation Operation
	// Namespace of the machine, or of the class if the call has no machine.
	Namespace string
	// Machine is the name of the machine. Empty if the call has none.
	Machine string
	// Class is the name of the class. Empty if the call has none.
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

// String returns the call in one line. Its form may change.
func (c Call) String() string {
	return fmt.Sprintf("%s: %s after %s", c.target(), c.Code, c.Duration)
}

// target returns what was called.
func (c Call) target() target {
	return target{op: c.Operation, namespace: c.Namespace, machine: c.Machine, class: c.Class}
}

// Observe returns d with a function that is called after every call, for metrics, logs and
// traces. It does not change responses or errors. tell is called in the goroutine of the call,
// so it must be fast and safe for use by multiple goroutines.
//
// Times are those of c. A nil c means the real clock, and a nil tell does nothing. A nil d
// becomes a driver that fails with Internal. Put Observe around [WithDeadline], so that it
// sees the same code as the caller.
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
