// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// call makes a driver call and puts the result into the observation. The next decision handles an error.
func (p *pass) call(ctx context.Context, do machine.CallDriver) error {
	if do.Operation == driver.OpCreateMachine {
		if same, err := p.unchanged(ctx); err != nil || !same {
			return err
		}
	}
	class := p.in.Class.Class
	secret, _ := runners.MergedSecret(ctx, p.Reader, class) // the decision has checked the Secrets
	asked := p.now()
	answer, err := machine.Call(ctx, p.Driver, do, p.in.Machine, class, secret)
	if err != nil {
		return err
	}
	answer.AskedAt, answer.ClassVersion = asked, p.in.Class.Version
	p.in.VM = p.in.VM.After(answer, p.now(), runners.Random(p.Random)())
	if codes.Of(answer.Err) == codes.OutOfRange && p.SeveralVMs != nil {
		p.SeveralVMs(classKey(p.in.Machine))
	}
	looked := answer.Operation == driver.OpDeleteMachine || answer.Operation == driver.OpGetMachineStatus
	if ctx.Err() == nil && (looked || p.in.VM.NodeNameOf(p.in.Machine) != p.in.Node.Name) {
		p.in.Node = p.observeNode(ctx, p.in.Machine) // the Node may have joined, or its name may be known only now
	}
	if ctx.Err() != nil && p.in.VM.Failure.Code == codes.OK {
		return errors.Join(ctx.Err(), p.recordResult(ctx))
	}
	return ctx.Err()
}

// confirmedFor is how long a confirmation of the version of a machine counts. It is much less than the
// time after which another process can have the lease.
const confirmedFor = time.Second

// unchanged reports whether the API server has the same version of the machine, and otherwise puts the
// newer version into the observation. The first lists of a new process may be older than the writes of
// the process before it. Tokens and VMs are created only for a machine that is unchanged. It reads the
// machine unless a request of this pass has just confirmed the version.
func (p *pass) unchanged(ctx context.Context) (bool, error) {
	asked := p.now()
	if !p.kept.confirmed.IsZero() && asked.Sub(p.kept.confirmed) < confirmedFor {
		return true, nil
	}
	m := p.in.Machine
	live, err := p.Requests.Get(ctx, m)
	if same, _ := live.(*v1alpha1.Machine); err == nil && same != nil && same.UID == m.UID && same.ResourceVersion == m.ResourceVersion {
		p.kept.confirmed = asked
		return true, nil
	}
	return false, p.afterWrite(ctx, live, err)
}

// recordTimeout is the deadline for recording the result of a call after the end of the pass.
const recordTimeout = 5 * time.Second

// recordResult records the result of a driver call that finished after its pass was canceled, so that the
// next pass starts from it.
func (p *pass) recordResult(ctx context.Context) error {
	d := machine.Decide(p.in, p.Policy, p.now())
	u, _ := d.Action.(machinist.Update)
	m, ok := u.Object.(*v1alpha1.Machine)
	if !ok || len(m.Finalizers) < len(p.in.Machine.Finalizers) { // its Node may have joined during the call
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return p.update(ctx, u)
}
