// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// finishing returns d with calls that continue when the context of their caller ends, until calls
// ends. A canceled call may or may not have had its effect, and the next leader would have to find
// out. No call begins after the context of its caller has ended, or while the gate is closed.
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
