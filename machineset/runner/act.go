// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// apply carries out the actions of the decision. It returns the holds of Failed machines that it did not
// delete.
func (p *pass) apply(ctx context.Context) (failure machineset.Failure, stay []machinist.Hold, failed error) {
	var deletions []machinist.Delete
	for _, action := range p.d.Actions {
		var err error
		switch a := action.(type) {
		case machinist.Update:
			if _, ofMachine := a.Object.(*v1alpha1.Machine); ofMachine { // the other actions do not depend on it
				if writeErr := p.update(ctx, a); writeErr != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", a, writeErr))
				}
			} else if failed == nil { // the set says that its machines are written
				err = p.update(ctx, a)
			}
		case machinist.Refresh:
			err = p.refresh(ctx, a)
		case machinist.Delete:
			deletions = append(deletions, a) // they are last
		case machinist.Create:
			failure.Create = p.create(ctx, a)
		default:
			err = unknownAction(action)
		}
		if err != nil {
			return failure, stay, errors.Join(failed, fmt.Errorf("%s: %w", action, err))
		}
	}
	stay, failure.Delete = p.deleteAll(ctx, deletions)
	return failure, stay, failed
}

// update writes the set or a machine. The written set replaces the observed one, because its status is
// written after this.
func (p *pass) update(ctx context.Context, u machinist.Update) error {
	adopted := !slices.Contains(p.in.Set.Finalizers, v1alpha1.MCMFinalizerName)
	written, err := runners.Update(ctx, p.Requests, u)
	if _, ofSet := written.(*v1alpha1.MachineSet); ofSet && err == nil {
		p.wrote(written)
		if adopted { // no process has made machines before
			p.memory.Change(p.in.Set, func(m *memory) { m.proven = true })
		}
	}
	if m, ok := u.Before.(*v1alpha1.Machine); ok && p.Report != nil {
		if e := machineset.Event(p.in.Set, u, m.Name, err); e.Reason != "" {
			p.Report(m, e)
		}
	}
	return objects.IgnoreNotFound(err)
}

// refresh reads one machine, or lists those of the set, from the API server. The decisions wait until the
// Reader shows them.
func (p *pass) refresh(ctx context.Context, a machinist.Refresh) error {
	if a.Name != "" {
		_, err := p.look(ctx, a.Name)
		return err
	}
	set := p.in.Set
	live, err := runners.List[*v1alpha1.Machine](ctx, p.Requests, set.Namespace, p.selector)
	if err != nil {
		return err
	}
	cached, err := objects.List[*v1alpha1.Machine](ctx, p.Reader, runners.ByController, runners.ControllerKey(set.Namespace, set.UID))
	if err == nil {
		p.memory.Change(set, func(m *memory) { m.expected, m.proven = machine.Listed(m.expected, live, cached, p.now()), true })
	}
	return err
}

// look reads a machine from the API server to settle an expectation. It returns nil if there is none.
func (p *pass) look(ctx context.Context, name string) (*v1alpha1.Machine, error) {
	live, err := objects.Get[*v1alpha1.Machine](ctx, p.Requests, p.in.Set.Namespace, name)
	if err == nil {
		p.memory.Change(p.in.Set, func(m *memory) { m.expected = m.expected.Looked(v1alpha1.MachineKind, name, live, p.now()) })
	}
	return live, err
}

// settle updates the expectations with the result of a request. It drops the error of a creation if the
// machine exists and belongs to the set.
func (p *pass) settle(ctx context.Context, name string, creates bool, err error) error {
	look := false
	p.memory.Change(p.in.Set, func(m *memory) { m.expected, look = m.expected.Failed(v1alpha1.MachineKind, name, err) })
	if !look {
		return err
	}
	live, lookErr := p.look(ctx, name)
	if creates && live != nil && metav1.IsControlledBy(live, p.in.Set) {
		return nil
	}
	return errors.Join(err, lookErr)
}

// responded reports the Event of a request, unless its object or namespace does not exist.
func (p *pass) responded(ctx context.Context, e machinist.Event, err error) {
	if err == nil || !apierrors.IsNotFound(err) && ctx.Err() == nil {
		p.report(e)
	}
}

// inBatches sends n requests in the batches of [members.Batches], those of one batch in parallel.
// goOn decides after each batch. No further request is sent when the set is superseded.
func (p *pass) inBatches(ctx context.Context, n int, send func(i int) error, goOn func(err error) bool) (failed error) {
	sent := 0
	for _, size := range members.Batches(n) {
		var superseded atomic.Bool
		err := errors.Join(objects.InParallel(ctx, p.Parallel, size, func(i int) error {
			if sent+i > 0 && p.superseded(ctx) {
				superseded.Store(true)
				return nil
			}
			return send(sent + i)
		})...)
		failed, sent = errors.Join(failed, err), sent+size
		if superseded.Load() || !goOn(err) {
			break
		}
	}
	return failed
}

// create creates machines in batches. A failure stops the next batch: a set whose machines cannot be
// created learns it from one request.
func (p *pass) create(ctx context.Context, a machinist.Create) error {
	return p.inBatches(ctx, a.Count, func(int) error { return p.createOne(ctx, a) }, func(err error) bool { return err == nil })
}

func (p *pass) createOne(ctx context.Context, a machinist.Create) error {
	m, err := machineset.NewMachine(a, runners.Suffix(runners.Random(p.Random)))
	if err != nil {
		return err
	}
	facts.InheritShard(m, p.in.Set)
	name, now := m.Name, p.now()
	p.memory.Change(p.in.Set, func(kept *memory) { kept.expected = kept.expected.Creating(v1alpha1.MachineKind, name, now) })
	_, err = p.Requests.Create(ctx, m)
	err = p.settle(ctx, name, true, err)
	p.responded(ctx, machineset.Event(p.in.Set, a, name, err), err)
	return err
}

// deleteAll deletes machines in batches. A failure does not stop the next batch, because the set would
// begin with the same machine again. It returns the holds of Failed machines that stay.
func (p *pass) deleteAll(ctx context.Context, deletions []machinist.Delete) (stay []machinist.Hold, err error) {
	var mu sync.Mutex
	err = p.inBatches(ctx, len(deletions), func(i int) error {
		hold, err := p.delete(ctx, deletions[i])
		if hold.Reason != "" {
			mu.Lock()
			defer mu.Unlock()
			stay = append(stay, hold)
		}
		return err
	}, func(error) bool { return ctx.Err() == nil })
	return stay, err
}

// delete deletes a machine. A hold with a reason means that the machine stays until the next check.
func (p *pass) delete(ctx context.Context, a machinist.Delete) (machinist.Hold, error) {
	m, ok := a.Object.(*v1alpha1.Machine)
	if !ok {
		return machinist.Hold{}, unknownAction(a)
	}
	if a.Unchanged { // it is Failed, and may recover
		if hold := p.stays(ctx, m); hold.Reason != "" {
			return hold, ctx.Err()
		}
	}
	now := p.now()
	p.memory.Change(p.in.Set, func(kept *memory) {
		kept.expected, kept.unjoined = kept.expected.Deleting(v1alpha1.MachineKind, m.Name, m.UID, now), kept.unjoined.Deleting(a, now)
	})
	err := p.Requests.Delete(ctx, m, a.Unchanged)
	if a.Unchanged && apierrors.IsConflict(err) { // it has changed; the change causes another pass
		hold := machinist.Hold{Subject: "machine/" + m.Name, Reason: a.Reason, Message: "it changed before its deletion", Until: now}
		return hold, p.settle(ctx, m.Name, false, err)
	}
	p.responded(ctx, machineset.Event(p.in.Set, a, m.Name, err), err)
	return machinist.Hold{}, p.settle(ctx, m.Name, false, objects.IgnoreNotFound(err))
}

// stays returns the hold of a Failed machine that stays, because its Node may make it Running again. It
// reads the Node from the API server. A hold without a reason means that the machine is to be deleted.
func (p *pass) stays(ctx context.Context, m *v1alpha1.Machine) machinist.Hold {
	name, now := m.Labels[v1alpha1.NodeLabelKey], p.now()
	if name == "" || runners.View(ctx, p.Reader, name).NoTarget {
		return machinist.Hold{}
	}
	view, err := p.target.Node(ctx, p.Requests, m.Spec.ProviderID, name, now)
	var read time.Time
	p.memory.Change(p.in.Set, func(kept *memory) {
		kept.recovering, read = kept.recovering.Read(m, view.ReadyAgain(m, now), now)
	})
	replace, reason := machineset.ReplaceFailed(m, view, read, now)
	if replace {
		return machinist.Hold{}
	}
	hold := machinist.Hold{Subject: "machine/" + m.Name, Reason: reason, Until: now.Add(runners.TargetRetry)}
	if err != nil {
		hold.Message = err.Error()
	}
	return hold
}

// unknownAction is the error of an action that the executor does not know.
func unknownAction(a machinist.Action) error { return fmt.Errorf("unknown action %T", a) }
