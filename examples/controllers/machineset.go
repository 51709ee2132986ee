// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	api "github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// machineSetReconciler reconciles MachineSet objects.
type machineSetReconciler struct {
	*loop
	cfg        *Config
	machinesOf func(ownerKey string) []*api.Machine
	machine    func(namespace, name string) (*api.Machine, error)
	set        func(namespace, name string) (*api.MachineSet, error)
	node       func(name string) (*corev1.Node, error) // nil without a target cluster
	written    *written[*api.MachineSet]
	memory     perObject[setMemory]
	outage     targetOutage
	readyAgain perObject[readyAgain] // by machine
}

// setMemory is what is kept of a set between two passes.
type setMemory struct {
	expected machine.Expectations
	unjoined machineset.NeverJoined
	proven   bool
}

// expect changes the expectations of a set.
func (r *machineSetReconciler) expect(set *api.MachineSet, change func(machine.Expectations) machine.Expectations) {
	r.memory.change(set.UID, func(m setMemory) setMemory {
		m.expected = change(m.expected)
		return m
	})
}

func newMachineSets(cfg *Config, c *caches) *machineSetReconciler {
	informers := c.machines.Machine().V1alpha1()
	machines, sets := informers.Machines(), informers.MachineSets().Informer()
	r := &machineSetReconciler{cfg: cfg, machinesOf: c.machinesOf, machine: func(namespace, name string) (*api.Machine, error) {
		return machines.Lister().Machines(namespace).Get(name)
	}}
	r.set = func(namespace, name string) (*api.MachineSet, error) {
		return informers.MachineSets().Lister().MachineSets(namespace).Get(name)
	}
	r.node = c.node
	r.written = newWritten[*api.MachineSet](shows[*api.MachineSet](sets))
	r.loop = newLoop(cfg, "machineset", r.pass)
	r.wakeWithFreeze(sets, time.Second)
	on(sets, addChanged[*api.MachineSet](r.loop))
	onDelete(sets, func(s *api.MachineSet) {
		r.memory.forget(s.UID)
		r.written.forget(s.UID)
	})
	onDelete(machines.Informer(), func(m *api.Machine) { r.readyAgain.forget(m.UID) })
	on(machines.Informer(), func(before, after *api.Machine) {
		if machine.Changed(before, after) {
			each(func(m *api.Machine) { r.addOwner(m, sets, 0) })(before, after)
		}
	})
	return r
}

// pass decides on the newest known version of a set. If anything but its status is to be written, it
// reads the set from the API server, and decides again if that is another version. The status needs no
// such check: the API server refuses that of an old version.
func (r *machineSetReconciler) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	set, err := r.set(key.Namespace, key.Name)
	if err != nil {
		r.cfg.holds.forget(r.kind, key)
		return time.Time{}, ignoreNotFound(err)
	}
	if !r.cfg.mine(set) {
		return time.Time{}, nil
	}
	set, _ = r.written.newest(set)
	in, claims, d := r.decide(set)
	if len(d.Actions) > 0 || !claims.Settled() {
		live, err := r.cfg.SetClient.MachineV1alpha1().MachineSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil || !r.cfg.mine(live) {
			r.cfg.holds.forget(r.kind, key)
			return time.Time{}, ignoreNotFound(err)
		}
		r.written.put(live)
		if live.ResourceVersion != set.ResourceVersion {
			in, claims, d = r.decide(live)
		}
		if err := writeClaims(ctx, r.cfg.setClients(), claims, machineset.OwnerSet(live), live); err != nil {
			return time.Time{}, err
		}
	}
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Reason: d.Reason, Holds: d.Holds, Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	now := r.cfg.Clock.Now()
	stuck := r.cfg.reportStuck(r.kind, in.Set, key, d.Holds, sinceProgress(in.Set.Status.LastOperation.LastUpdateTime.Time, now))
	failure, again, err := r.apply(ctx, &in, d.Actions)
	failure.Unfinished = err != nil
	in.Expectations = r.memory.get(in.Set.UID).expected
	return machinist.Earliest(d.NextCheck, again, stuck), errors.Join(err, r.record(ctx, in, failure, d.Events), failure.Create, failure.Delete)
}

// decide observes a set, its machines, its expectations and the Nodes of failed machines, and decides.
func (r *machineSetReconciler) decide(set *api.MachineSet) (machineset.Observation, machineset.Claims[*api.Machine], machineset.Decision) {
	// Expectations are read before the list, so that the list is at least as new.
	r.expect(set, func(e machine.Expectations) machine.Expectations {
		return e.Observe(func(_, name string) metav1.Object { return orNil(r.machine(set.Namespace, name)) }, true)
	})
	claims := claim(machineset.OwnerSet(set), set, machineset.ClaimSelector(set), r.machinesOf)
	memory := r.memory.get(set.UID)
	in := machineset.Observation{
		Set: set, Machines: claims.Owned, Complete: claims.Settled(), Proven: memory.proven, Released: claims.Released, Nodes: r.nodes(claims.Owned),
		Expectations: memory.expected, NeverJoined: memory.unjoined, Freeze: r.cfg.freeze.now(),
	}
	return in, claims, machineset.Decide(in, r.cfg.Sets, r.cfg.Clock.Now())
}

// list lists the machines of a set from the API server. The decisions wait until the cache shows them.
func (r *machineSetReconciler) list(ctx context.Context, set *api.MachineSet) error {
	live, err := liveMachines(ctx, r.cfg.SetClient, set.Namespace, machineset.ClaimSelector(set))
	if err == nil {
		r.memory.change(set.UID, func(m setMemory) setMemory {
			return setMemory{machine.Listed(m.expected, live, r.machinesOf(string(set.UID)), r.cfg.Clock.Now()), m.unjoined, true}
		})
	}
	return err
}

// nodes returns the Nodes of failed machines.
func (r *machineSetReconciler) nodes(machines []*api.Machine) map[string]machine.NodeView {
	views := map[string]machine.NodeView{}
	for _, m := range machines {
		name := m.Labels[api.NodeLabelKey]
		if name == "" || m.Status.CurrentStatus.Phase != api.MachineFailed {
			continue
		}
		if r.node == nil {
			views[name] = machine.NodeView{NoTarget: true}
			continue
		}
		if node, err := r.node(name); ignoreNotFound(err) == nil {
			views[name] = machine.NodeView{Looked: true, Node: node}
		}
	}
	return views
}

// superseded reports whether the cache has a newer version of the set than the decision. The rest
// of that decision is then dropped, because the event of the newer version has enqueued the set.
func (r *machineSetReconciler) superseded(set *api.MachineSet) bool {
	cached, err := r.set(set.Namespace, set.Name)
	if err != nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, set.ResourceVersion)
	return err == nil && order > 0
}

// apply carries out the actions of a decision. The time is the next check of Failed machines that it
// did not delete. Zero means none.
func (r *machineSetReconciler) apply(ctx context.Context, in *machineset.Observation, actions []machinist.Action) (failure machineset.Failure, again time.Time, _ error) {
	var deletions []machinist.Delete
	for _, action := range actions {
		var err error
		switch a := action.(type) {
		case machinist.Update:
			err = r.update(ctx, in, a)
		case machinist.Refresh:
			if a.Name == "" {
				err = r.list(ctx, in.Set)
			} else {
				_, err = r.look(ctx, in.Set, a.Name)
			}
		case machinist.Delete:
			deletions = append(deletions, a) // they are last
		case machinist.Create:
			failure.Create = r.create(ctx, in.Set, a)
		default:
			err = fmt.Errorf("unknown action %T", action)
		}
		if err != nil {
			return failure, again, fmt.Errorf("%s: %w", action, err)
		}
	}
	again, failure.Delete = r.deleteAll(ctx, in.Set, deletions)
	return failure, again, nil
}

// inBatches sends n requests in batches that double in size. The requests of one batch are sent in
// parallel. goOn decides after each batch. No further request is sent when the set is superseded.
func (r *machineSetReconciler) inBatches(ctx context.Context, set *api.MachineSet, n int, send func(i int) error, goOn func(err error) bool) (failed error) {
	sent := 0
	for _, size := range machineset.Batches(n) {
		var superseded atomic.Bool
		err := errors.Join(r.cfg.inParallel(ctx, size, func(i int) error {
			if sent+i > 0 && r.superseded(set) {
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

// deleteAll deletes machines in batches. A failure does not stop the next batch, because the set
// would begin with the same machine again. The time is the next check of Failed machines that stay.
func (r *machineSetReconciler) deleteAll(ctx context.Context, set *api.MachineSet, deletions []machinist.Delete) (again time.Time, err error) {
	checks := make([]time.Time, len(deletions))
	err = r.inBatches(ctx, set, len(deletions), func(i int) (err error) {
		checks[i], err = r.delete(ctx, set, deletions[i])
		return err
	}, func(error) bool { return ctx.Err() == nil })
	for _, at := range checks {
		again = machinist.Earliest(again, at)
	}
	return again, err
}

// update writes the set or a machine. The written set replaces the observed one, because its status is
// written after this.
func (r *machineSetReconciler) update(ctx context.Context, in *machineset.Observation, u machinist.Update) error {
	written, err := r.cfg.setClients().update(ctx, u)
	if set, ok := written.(*api.MachineSet); ok {
		in.Set = set
		r.written.put(set)
		r.memory.change(set.UID, func(m setMemory) setMemory { return setMemory{m.expected, m.unjoined, true} })
	}
	return ignoreNotFound(err)
}

// look reads a machine from the API server to settle an expectation. It returns nil if there is
// none.
func (r *machineSetReconciler) look(ctx context.Context, set *api.MachineSet, name string) (*api.Machine, error) {
	live, err := r.cfg.SetClient.MachineV1alpha1().Machines(set.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err == nil {
		r.expect(set, func(e machine.Expectations) machine.Expectations {
			return e.Looked(machine.KindMachine, name, live, r.cfg.Clock.Now())
		})
	}
	return live, err
}

// delete deletes a machine. A time that is not zero means that the machine stays until the next
// check at that time.
func (r *machineSetReconciler) delete(ctx context.Context, set *api.MachineSet, a machinist.Delete) (time.Time, error) {
	m := a.Object.(*api.Machine) //nolint:forcetypeassert // a set deletes machines
	if a.Unchanged {             // it is Failed, and may recover
		if again := r.staysUntil(ctx, set, m); !again.IsZero() {
			return again, ctx.Err()
		}
	}
	now := r.cfg.Clock.Now()
	r.memory.change(set.UID, func(memory setMemory) setMemory {
		return setMemory{memory.expected.Deleting(machine.KindMachine, m.Name, m.UID, now), memory.unjoined.Deleting(a, now), memory.proven}
	})
	err := r.cfg.setClients().remove(ctx, a)
	if a.Unchanged && apierrors.IsConflict(err) {
		return now, r.settle(ctx, set, m.Name, false, err)
	}
	r.report(ctx, set, machineset.ResponseEvent(a, m.Name, err), err)
	return time.Time{}, r.settle(ctx, set, m.Name, false, ignoreNotFound(err))
}

// create creates machines in batches. A failure stops the next batch: a set whose machines cannot be
// created learns it from one request.
func (r *machineSetReconciler) create(ctx context.Context, set *api.MachineSet, a machinist.Create) error {
	return r.inBatches(ctx, set, a.Count, func(int) error { return r.createOne(ctx, set, a) }, func(err error) bool { return err == nil })
}

func (r *machineSetReconciler) createOne(ctx context.Context, set *api.MachineSet, a machinist.Create) error {
	m, err := machineset.NewMachine(a, machineset.Suffix(r.cfg.Random))
	if err != nil {
		return err
	}
	r.cfg.own(m)
	name, now := m.Name, r.cfg.Clock.Now()
	r.expect(set, func(e machine.Expectations) machine.Expectations { return e.Creating(machine.KindMachine, name, now) })
	_, err = r.cfg.setClients().create(ctx, m)
	err = r.settle(ctx, set, name, true, err)
	r.report(ctx, set, machineset.ResponseEvent(a, name, err), err)
	return err
}

// report records the Event of a request, unless its object or namespace does not exist.
func (r *machineSetReconciler) report(ctx context.Context, set *api.MachineSet, e machinist.Event, err error) {
	if err == nil || !apierrors.IsNotFound(err) && ctx.Err() == nil {
		r.cfg.event(set, e)
	}
}

// settle updates the expectations with the result of a request. It drops the error of a creation if
// the machine exists and belongs to the set.
func (r *machineSetReconciler) settle(ctx context.Context, set *api.MachineSet, name string, creates bool, err error) error {
	look := false
	r.expect(set, func(e machine.Expectations) machine.Expectations {
		e, look = e.Failed(machine.KindMachine, name, err)
		return e
	})
	if !look {
		return err
	}
	live, lookErr := r.look(ctx, set, name)
	if creates && live != nil && metav1.IsControlledBy(live, set) {
		return nil
	}
	return errors.Join(err, lookErr)
}

// record writes the status of a set if it has changed, and then records the events.
func (r *machineSetReconciler) record(ctx context.Context, in machineset.Observation, failure machineset.Failure, events []machinist.Event) error {
	next, changed := machineset.Status(in, failure, r.cfg.Clock.Now())
	gone := in.Set.DeletionTimestamp != nil && len(in.Set.Finalizers) == 0
	if gone || !changed {
		return nil
	}
	set := in.Set.DeepCopy()
	set.Status = next
	written, err := r.cfg.SetClient.MachineV1alpha1().MachineSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
	if err != nil {
		return ignoreNotFound(err) // the next pass has the same events
	}
	r.written.put(written)
	for _, e := range events {
		r.cfg.event(set, e)
	}
	return nil
}
