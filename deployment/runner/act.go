// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// advance carries out the actions of the decision up to the first error, and writes the status.
func (p *pass) advance(ctx context.Context) (time.Time, error) {
	d, now := p.in.Deployment, p.now()
	p.decided(objects.KeyOf(d), d, p.d)
	observed := d.Status.ObservedGeneration
	last, failed := p.apply(ctx)
	if failed != nil && !writesNode(last) {
		p.d.Status.ObservedGeneration = observed // the other actions were not tried
	}
	err := failed
	if create, ok := last.(machinist.Create); ok && failed != nil {
		taken, lookErr := p.takenBy(ctx, create, failed)
		if p.in.NameTakenBy == nil && taken != nil {
			p.in.NameTakenBy = taken
			p.again() // it knows the set that has the name
			return p.advance(ctx)
		}
		if err = errors.Join(err, lookErr); lookErr == nil && ctx.Err() == nil {
			status, event := deployment.CreateFailed(d.Status, create.Object.GetName(), failed, now)
			p.d.Status, p.d.WriteStatus, p.d.Events = status, true, append(p.d.Events, event)
		}
	}
	return p.record(ctx, now, err)
}

// takenBy returns the set that has the name of a set whose creation failed because of that. It returns nil
// for another failure.
func (p *pass) takenBy(ctx context.Context, create machinist.Create, failed error) (*v1alpha1.MachineSet, error) {
	if !apierrors.IsAlreadyExists(failed) || p.in.NameTakenBy != nil {
		return nil, nil
	}
	live, err := p.Requests.Get(ctx, create.Object)
	taken, _ := live.(*v1alpha1.MachineSet)
	return taken, err
}

// record writes the status of the deployment if that is due, and then reports the Events.
func (p *pass) record(ctx context.Context, now time.Time, failed error) (time.Time, error) {
	d := p.in.Deployment
	var due time.Time
	p.memory.Change(d, func(m *memory) {
		due, m.recorded = m.recorded.Due(d.Status, p.d.Status, p.d.WriteStatus && len(p.d.Events) == 0, now)
	})
	if due.After(now) {
		p.d.WriteStatus, p.d.NextCheck = false, machinist.Earliest(p.d.NextCheck, due)
	}
	if p.d.WriteStatus {
		next := d.DeepCopy()
		next.Status = p.d.Status
		written, err := runners.Update(ctx, p.Requests, machinist.Update{Before: d, Object: next, Subresource: "status"})
		if err != nil {
			return p.d.NextCheck, errors.Join(failed, objects.IgnoreNotFound(err)) // the next pass has the same events
		}
		if stored, ok := written.(*v1alpha1.MachineDeployment); ok {
			p.own.Put(stored)
			p.memory.Change(d, func(m *memory) { m.recorded = m.recorded.Written(now) })
		}
	}
	for _, e := range p.d.Events {
		p.report(e)
	}
	return p.d.NextCheck, failed
}

// apply carries out the actions up to the first that fails. It returns the last action that was tried, and
// its error. Nodes come last and are written in parallel; one that cannot be written stops no other,
// and the error is that of all.
func (p *pass) apply(ctx context.Context) (last machinist.Action, failed error) {
	nodes := slices.IndexFunc(p.d.Actions, writesNode)
	if nodes < 0 {
		nodes = len(p.d.Actions)
	}
	for _, last = range p.d.Actions[:nodes] {
		if failed = p.applyOne(ctx, last); failed != nil {
			return last, fmt.Errorf("%s: %w", last, failed)
		}
	}
	marks := p.d.Actions[nodes:]
	errs := objects.InParallel(ctx, p.Parallel, len(marks), func(i int) error {
		if err := p.applyOne(ctx, marks[i]); err != nil {
			return fmt.Errorf("%s: %w", marks[i], err)
		}
		return nil
	})
	if len(marks) > 0 {
		last, failed = marks[len(marks)-1], errors.Join(errs...)
	}
	return last, failed
}

// applyOne carries out one action. A deleted object needs no write.
func (p *pass) applyOne(ctx context.Context, action machinist.Action) error {
	switch a := action.(type) {
	case machinist.Update:
		written, err := runners.Update(ctx, p.Requests, a)
		return p.wrote(written, err, machine.Expectations.Updated, a.Report)
	case machinist.Create:
		if set, ok := a.Object.(*v1alpha1.MachineSet); ok {
			facts.InheritShard(set, p.in.Deployment)
		}
		created, err := p.Requests.Create(ctx, a.Object)
		return p.wrote(created, err, machine.Expectations.Created, a.Report)
	case machinist.Delete:
		return objects.IgnoreNotFound(p.Requests.Delete(ctx, a.Object, a.Unchanged))
	case machinist.Refresh:
		if a.Name == "" {
			return p.list(ctx)
		}
		return p.look(ctx, a)
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// wrote records a write until the Reader shows it, and reports its Event. A written deployment replaces
// the observed one, because the status is written after this.
func (p *pass) wrote(
	o machinist.Object, err error, record func(machine.Expectations, metav1.Object, time.Time) machine.Expectations, report *machinist.Event,
) error {
	if err != nil {
		return objects.IgnoreNotFound(err)
	}
	d := p.in.Deployment
	switch o := o.(type) {
	case *v1alpha1.MachineDeployment:
		first := !slices.Contains(d.Finalizers, v1alpha1.MCMFinalizerName) // no process has made sets before
		p.own.Put(o)
		p.memory.Change(d, func(m *memory) { m.proven = m.proven || first })
		p.in.Deployment = o
	case metav1.Object:
		p.memory.Change(d, func(m *memory) { m.expected = record(m.expected, o, p.now()) })
	}
	if report != nil {
		p.report(*report)
	}
	return nil
}

func (p *pass) report(e machinist.Event) {
	if p.Report != nil {
		p.Report(p.in.Deployment, e)
	}
}

// list lists the sets of the deployment and their machines from the API server. The decisions wait until
// the Reader shows them.
func (p *pass) list(ctx context.Context) error {
	d := p.in.Deployment
	sets, err := runners.List[*v1alpha1.MachineSet](ctx, p.Requests, d.Namespace, p.selector)
	if err != nil {
		return err
	}
	machines, err := runners.List[*v1alpha1.Machine](ctx, p.Requests, d.Namespace, p.selector)
	if err != nil {
		return err
	}
	cached, _, err := observe(ctx, p.Reader, d)
	if err == nil {
		now := p.now()
		p.memory.Change(d, func(m *memory) {
			m.expected = machine.Listed(machine.Listed(m.expected, sets, cached.Sets, now), machines, cached.Machines, now)
			m.proven = true
		})
	}
	return err
}

// look reads an object from the API server if the Reader does not show the expected write.
func (p *pass) look(ctx context.Context, a machinist.Refresh) error {
	live, err := runners.Named(ctx, p.Requests, p.in.Deployment.Namespace, a.Kind, a.Name)
	if err == nil {
		p.memory.Change(p.in.Deployment, func(m *memory) { m.expected = m.expected.Looked(a.Kind, a.Name, live, p.now()) })
	}
	return err
}
