// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// call makes a driver call and puts the result into the observation. The next decision handles an
// error.
func (r *machineReconciler) call(ctx context.Context, in *machine.Observation, kept *memory, do machine.CallDriver) error {
	if do.Operation == driver.OpCreateMachine {
		if same, err := r.unchanged(ctx, in, kept); err != nil || !same {
			return err
		}
	}
	secret, _ := mergedSecret(in.Class.Class, r.secret) // the decision has checked the Secrets
	asked := r.cfg.Clock.Now()
	answer, err := machine.Call(ctx, r.cfg.Driver, do, in.Machine, in.Class.Class, secret)
	if err != nil {
		return err
	}
	answer.AskedAt, answer.ClassVersion = asked, in.Class.Version
	in.VM = in.VM.After(answer, r.cfg.Clock.Now(), r.cfg.Random())
	if codes.Of(answer.Err) == codes.OutOfRange {
		r.secondVM(classKey(in.Machine))
	}
	if looked := answer.Operation == driver.OpDeleteMachine || answer.Operation == driver.OpGetMachineStatus; ctx.Err() == nil && (looked || machine.NodeNameOf(in.Machine, in.VM) != in.Node.Name) {
		in.Node = r.observeNode(ctx, in.Machine, in.VM) // the Node may have joined, or its name may be known only now
	}
	if ctx.Err() != nil && in.VM.Failure.Code == codes.OK {
		return errors.Join(ctx.Err(), r.recordResult(ctx, in))
	}
	return ctx.Err()
}

// confirmedFor is how long a confirmation of the version of a machine counts. It is much less than
// the time after which another process can have the lease.
const confirmedFor = time.Second

// unchanged reports whether the API server has the same version of the machine, and otherwise puts
// the newer version into the observation. The first lists of a new process may be older than the
// writes of the process before it. Tokens and VMs are created only for a machine that is unchanged.
// It reads the machine unless a request of this pass has just confirmed the version.
func (r *machineReconciler) unchanged(ctx context.Context, in *machine.Observation, kept *memory) (bool, error) {
	asked := r.cfg.Clock.Now()
	if !kept.confirmed.IsZero() && asked.Sub(kept.confirmed) < confirmedFor {
		return true, nil
	}
	m := in.Machine
	live, err := r.cfg.Machines.MachineV1alpha1().Machines(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case err == nil && live.UID != m.UID:
		r.written.putDeleted(m.UID)
		in.Machine = nil
		return false, nil
	case err == nil && live.ResourceVersion == m.ResourceVersion:
		kept.confirmed = asked
		return true, nil
	default:
		return false, r.afterWrite(ctx, in)(live, err)
	}
}

// recordTimeout is the deadline for recording the result of a call after the end of the pass.
const recordTimeout = 5 * time.Second

// recordResult records the result of a driver call that finished after its pass was
// canceled, so that the next pass starts from it.
func (r *machineReconciler) recordResult(ctx context.Context, in *machine.Observation) error {
	d := machine.Decide(*in, r.cfg.Policy, r.cfg.Clock.Now())
	u, _ := d.Action.(machinist.Update)
	if _, ok := u.Object.(*v1alpha1.Machine); !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return r.update(ctx, in, &memory{}, u)
}
