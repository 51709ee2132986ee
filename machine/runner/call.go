// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
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
	if ctx.Err() == nil && (looked || machine.NodeNameOf(p.in.Machine, p.in.VM) != p.in.Node.Name) {
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
	o, err := p.Requests.Get(ctx, m)
	live, _ := o.(*v1alpha1.Machine)
	switch {
	case err == nil && live.UID != m.UID:
		p.wrote(runners.Gone[*v1alpha1.Machine](m.UID), m)
		p.in.Machine = nil
		return false, nil
	case err == nil && live.ResourceVersion == m.ResourceVersion:
		p.kept.confirmed = asked
		return true, nil
	default:
		return false, p.afterWrite(ctx, live, err)
	}
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

// lookForNode reads a Node from the API server and puts it into the observation.
func (p *pass) lookForNode(ctx context.Context, a machinist.Refresh) error {
	view, err := p.outages.Node(ctx, p.Requests, p.in.Machine.Spec.ProviderID, a.Name, p.now())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.decided(machine.Decision{Action: a}, err)
	}
	if view.Unanswered {
		p.in.Node.Unanswered = true
		return nil
	}
	p.in.Node = view
	if view.Node != nil {
		p.wroteNode(view.Node)
	}
	return nil
}

// drain makes one pass of the drain. A failed pass counts too, so that a drain by force ends.
func (p *pass) drain(ctx context.Context, a machine.DrainNode) error {
	state := p.in.Drain.StateFor(a)
	seen, notSeen := drainrunner.Observe(ctx, p.Reader, a.NodeName, a.Policy, state)
	seen.Node, seen.Reachability = p.in.Node.Node, a.Reachability // may be newer than the cache
	executor := drainrunner.Executor{Client: p.Target, Clock: p.Clock, Parallel: p.Parallel}
	if p.Drains != nil {
		executor.Observer = p.Drains
	}
	state, plan, err := executor.Pass(ctx, state, seen, a.Policy, a.NodeName)
	p.in.Drain = p.in.Drain.After(a, state, plan, p.now())
	if notSeen == nil && err == nil {
		p.reportDrain(plan)
	}
	return errors.Join(notSeen, err)
}

// reportDrain reports the progress since the last decision of the drain to the observer.
func (p *pass) reportDrain(d drain.Decision) {
	if p.Drains == nil {
		return
	}
	if p.kept.reported.Node != d.Node || p.kept.reported.Over() {
		p.kept.reported = drain.Decision{}
	}
	for _, progress := range drain.Compare(p.kept.reported, d, nil, p.now()) {
		p.Drains.Observe(progress)
	}
	p.kept.reported = d
}

// forgetDrain reports to the observer that a drain ends before its outcome.
func (e *Executor) forgetDrain(kept memory) {
	if e.Drains != nil && kept.reported.Node != "" && !kept.reported.Over() {
		e.Drains.Forget(kept.reported.Node)
	}
}

// inNamespaceOf returns the metadata of an object in the namespace of a machine, for a list.
func inNamespaceOf(m *v1alpha1.Machine) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace}
}
