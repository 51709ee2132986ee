// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
)

// call makes a driver call and puts the answer into the observation. A call that
// fails is an answer too: what it means is for the next decision.
func (r *machines) call(ctx context.Context, in *machine.Observation, do machine.Action) error {
	secret, _ := mergedSecret(in.Class.Class, r.secret) // whether what can be read is enough has been decided
	m, class := in.Machine, in.Class.Class
	var answer machine.Answer
	switch a := do.(type) {
	case machine.LookForVM:
		response, err := r.cfg.Driver.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromStatus(response, err)
	case machine.CreateVM:
		var err error
		if secret.Data, err = machine.RenderUserData(secret.Data, m.Name); err != nil {
			return err
		}
		response, err := r.cfg.Driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromCreate(response, err)
	case machine.InitializeVM:
		if a.LastKnownState != "" {
			m = m.DeepCopy()
			m.Status.LastKnownState = a.LastKnownState
		}
		response, err := r.cfg.Driver.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromInitialize(response, err)
	case machine.DeleteVM:
		response, err := r.cfg.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromDelete(response, err)
	default:
		return fmt.Errorf("%T is no driver call", do)
	}
	in.VM = in.VM.After(answer, r.cfg.Clock.Now(), r.cfg.Random())
	if ctx.Err() != nil && in.VM.Failure.Code == codes.OK {
		return errors.Join(ctx.Err(), r.lastWord(ctx, in))
	}
	return ctx.Err()
}

// lastWordTime bounds the write of what a call has answered after the end.
const lastWordTime = 5 * time.Second

// lastWord writes down what a call has answered that was let finish when its pass
// had been told to end, so that whoever comes next need not find it out again.
func (r *machines) lastWord(ctx context.Context, in *machine.Observation) error {
	d := machine.Decide(*in, r.cfg.Policy, r.cfg.Clock.Now())
	switch d.Do.(type) {
	case machine.UpdateMachine, machine.UpdateStatus:
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordTime)
	defer cancel()
	return r.act(ctx, in, &memory{}, d.Do)
}
