// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// finishing returns d with calls that go on when the context of their caller ends, until
// calls ends: a call that is cut short may or may not have had its effect, and the next
// leader has to find out. No call begins when the context of its caller has ended, or while
// the gate is shut.
func finishing(calls context.Context, g *gate, d driver.Driver) driver.Driver {
	return driver.Wrap(d, func(ctx context.Context, call string, run func(context.Context) error) error {
		if ctx.Err() != nil {
			return status.WrapError(codes.Canceled, "not begun: the manager stops", ctx.Err())
		}
		ended, err := g.begin(call)
		if err != nil {
			return status.WrapError(codes.Canceled, "not begun: "+err.Error(), err)
		}
		defer ended()
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(calls, cancel)() //nolint:contextcheck // the one that ends calls
		return run(own)
	})
}
