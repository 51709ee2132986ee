// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
)

// call makes a driver call and puts the answer into the observation. What a call
// that failed means is for the next decision.
func (r *machines) call(ctx context.Context, in *machine.Observation, do machine.Action) error {
	if _, creates := do.(machine.CreateVM); creates {
		if same, err := r.stillSo(ctx, in); err != nil || !same {
			return err
		}
	}
	secret, _ := mergedSecret(in.Class.Class, r.secret) // whether what can be read is enough has been decided
	asked := r.cfg.Clock.Now()
	answer, err := machine.Call(ctx, r.cfg.Driver, do, in.Machine, in.Class.Class, secret)
	if err != nil {
		return err
	}
	answer.AskedAt = asked
	in.VM = in.VM.After(answer, r.cfg.Clock.Now(), r.cfg.Random())
	if codes.Of(answer.Err) == codes.OutOfRange {
		r.secondVM(classKey(in.Machine))
	}
	if ctx.Err() == nil && (answer.Operation == driver.OpDeleteMachine || machine.NodeNameOf(in.Machine, in.VM) != in.Node.Name) {
		in.Node = r.observeNode(ctx, in.Machine, in.VM) // it may have joined meanwhile, or is known by its name only now
	}
	if ctx.Err() != nil && in.VM.Failure.Code == codes.OK {
		return errors.Join(ctx.Err(), r.lastWord(ctx, in))
	}
	return ctx.Err()
}

// stillSo asks the API server whether the machine is as it is known, and if not,
// puts what it is into the observation. The first lists of a controller that begins
// may be older than what the one before it wrote: on such news neither a token nor
// a VM is made.
func (r *machines) stillSo(ctx context.Context, in *machine.Observation) (bool, error) {
	m := in.Machine
	live, err := r.cfg.Machines.MachineV1alpha1().Machines(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case err == nil && live.UID != m.UID:
		r.written.putDeleted(m.UID)
		in.Machine = nil
		return false, nil
	case err == nil && live.ResourceVersion == m.ResourceVersion:
		return true, nil
	default:
		return false, r.afterWrite(ctx, in)(live, err)
	}
}

// lastWordTime bounds the write of what a call has answered after the end.
const lastWordTime = 5 * time.Second

// lastWord records the result of a driver call that finished after its pass was
// canceled, so that the next pass starts from it.
func (r *machines) lastWord(ctx context.Context, in *machine.Observation) error {
	d := machine.Decide(*in, r.cfg.Policy, r.cfg.Clock.Now())
	switch d.Action.(type) {
	case machine.UpdateMachine, machine.UpdateStatus:
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordTime)
	defer cancel()
	return r.act(ctx, in, &memory{}, d.Action)
}
