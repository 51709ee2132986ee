// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/permits"
)

// permitTime is how long a machine with a permit to fail counts as failed before the cache shows that.
const permitTime = 10 * time.Minute

// permits returns the ledger of the machines that may fail at a time.
func (e *Executor) permits() *permits.Ledger {
	e.makeLedger.Do(func() { e.ledger = permits.NewLedger(0, permitTime) })
	return e.ledger
}

// takePermit decides whether a machine may fail: first the Guard, then the replacement limit of its group.
func (p *pass) takePermit(ctx context.Context, a machine.TakePermit) error {
	p.in.Permit = machine.PermitView{Asked: true, Within: a.Within}
	if h := p.ask(ctx, a.VMGone, nil); h.Reason != "" {
		p.in.Permit.Refused = h
		return nil
	}
	if a.Within == 0 { // the group has no limit
		p.in.Permit.Held = true
		return nil
	}
	if _, refused := p.permits().AcquireWithin(a.Within, a.Key, a.Holder, p.now()); refused != nil {
		p.revoke()
		p.in.Permit.Refused.Until = refused.RetryAt
		return nil
	}
	p.in.Permit.Held, p.kept.permit = true, a.Key
	m := p.in.Machine
	live, err := runners.List[*v1alpha1.Machine](ctx, p.Requests, m.Namespace, nil)
	if err != nil {
		return err
	}
	// The siblings are counted again while the permit is held. The first lists of a new process may not
	// contain the failures of the process before it.
	p.in.Siblings = among(ctx, p.Reader, m, live)
	if h := p.ask(ctx, a.VMGone, live); h.Reason != "" {
		p.permits().Release(a.Key, a.Holder, p.now())
		p.in.Permit.Held, p.in.Permit.Refused, p.kept.permit = false, h, ""
	}
	return nil
}

// ask asks the Guard whether the machine may fail.
func (p *pass) ask(ctx context.Context, vmGone bool, live []*v1alpha1.Machine) machinist.Hold {
	if p.Guard == nil {
		return machinist.Hold{}
	}
	return p.Guard.Ask(ctx, p.in.Machine, vmGone, live)
}

func (p *pass) revoke() {
	if p.Guard != nil {
		p.Guard.Revoke(p.in.Machine)
	}
}

func (p *pass) returnPermit(a machine.ReturnPermit) {
	p.permits().Release(cmp.Or(p.kept.permit, a.Key), a.Holder, p.now()) // the group may have changed, or is not read
	p.revoke()
	p.in.Permit, p.kept.permit = machine.PermitView{Asked: true}, ""
}
