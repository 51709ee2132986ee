// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
)

// takePermit answers whether a machine may be failed: by the limit of replacements.
func (r *machines) takePermit(ctx context.Context, in *machine.Observation, a machine.TakePermit) error {
	in.Permit = machine.PermitView{Asked: true, Held: true, Within: a.Within}
	if a.Within == 0 { // nothing is limited
		return nil
	}
	if _, refused := r.permits.AcquireWithin(a.Within, a.Key, a.Holder, r.cfg.Clock.Now()); refused != nil {
		in.Permit.Held, in.Permit.Refused = false, machinist.Hold{Until: refused.RetryAt}
		return nil
	}
	var err error // with the permit in hand, they are counted again
	in.Siblings, err = r.liveSiblings(ctx, in.Machine)
	return err
}
