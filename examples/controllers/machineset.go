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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
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
		if err := writeClaims(ctx, claims, machineset.OwnerSet(live), live, r.cfg.SetClient.MachineV1alpha1().Machines(key.Namespace).Patch); err != nil {
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
		if name == "" || !machineset.Failed(m) {
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
func (r *machineSetReconciler) apply(ctx context.Context, in *machineset.Observation, actions []machineset.Action) (failure machineset.Failure, again time.Time, _ error) {
	client := r.cfg.SetClient.MachineV1alpha1().Machines(in.Set.Namespace)
	var deletions []machineset.Delete
	for _, action := range actions {
		var err error
		switch a := action.(type) {
		case machineset.SetFinalizers:
			err = r.finalizers(ctx, in, a)
		case machineset.Sync:
			err = r.sync(ctx, client, in.Machines, a)
		case machineset.List:
			err = r.list(ctx, in.Set)
		case machineset.Look:
			_, err = r.look(ctx, client, in.Set, a.Name)
		case machineset.Delete:
			deletions = append(deletions, a) // they are last
		case machineset.Create:
			failure.Create = r.create(ctx, client, in.Set, a.Count)
		default:
			err = fmt.Errorf("unknown action %T", action)
		}
		if err != nil {
			return failure, again, fmt.Errorf("%s: %w", action, err)
		}
	}
	again, failure.Delete = r.deleteAll(ctx, client, *in, deletions)
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
func (r *machineSetReconciler) deleteAll(ctx context.Context, client v1alpha1.MachineInterface, in machineset.Observation, deletions []machineset.Delete) (again time.Time, err error) {
	checks := make([]time.Time, len(deletions))
	err = r.inBatches(ctx, in.Set, len(deletions), func(i int) (err error) {
		checks[i], err = r.delete(ctx, client, in, deletions[i])
		return err
	}, func(error) bool { return ctx.Err() == nil })
	for _, at := range checks {
		again = machinist.Earliest(again, at)
	}
	return again, err
}

// finalizers writes the finalizers of the set, and puts the written set into the observation. The
// observed set may be that of the cache, which must not change.
func (r *machineSetReconciler) finalizers(ctx context.Context, in *machineset.Observation, a machineset.SetFinalizers) error {
	patch, err := a.Patch()
	if err != nil {
		return err
	}
	written, err := r.cfg.SetClient.MachineV1alpha1().MachineSets(in.Set.Namespace).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		in.Set = written
		r.written.put(written)
		r.memory.change(written.UID, func(m setMemory) setMemory { return setMemory{m.expected, m.unjoined, true} })
	}
	return ignoreNotFound(err)
}

func (r *machineSetReconciler) sync(ctx context.Context, client v1alpha1.MachineInterface, machines []*api.Machine, a machineset.Sync) error {
	for _, m := range machines {
		if next := a.Apply(m); next != nil {
			_, err := client.Update(ctx, next, metav1.UpdateOptions{})
			return ignoreNotFound(err)
		}
	}
	return nil
}

// look reads a machine from the API server to settle an expectation. It returns nil if there is
// none.
func (r *machineSetReconciler) look(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, name string) (*api.Machine, error) {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
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
func (r *machineSetReconciler) delete(ctx context.Context, client v1alpha1.MachineInterface, in machineset.Observation, a machineset.Delete) (time.Time, error) {
	set := in.Set
	same, again := r.preconditions(ctx, in, a)
	if same == nil {
		return again, ctx.Err()
	}
	now := r.cfg.Clock.Now()
	r.memory.change(set.UID, func(m setMemory) setMemory {
		return setMemory{m.expected.Deleting(machine.KindMachine, a.Name, a.UID, now), m.unjoined.Deleting(a, now), m.proven}
	})
	err := client.Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: same})
	if same.ResourceVersion != nil && apierrors.IsConflict(err) {
		return now, r.settle(ctx, client, set, a.Name, false, err)
	}
	r.report(ctx, set, a.Event(err), err)
	return time.Time{}, r.settle(ctx, client, set, a.Name, false, ignoreNotFound(err))
}

// create creates machines in batches. A failure stops the next batch: a set whose machines cannot be
// created learns it from one request.
func (r *machineSetReconciler) create(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, count int) error {
	return r.inBatches(ctx, set, count, func(int) error { return r.createOne(ctx, client, set) }, func(err error) bool { return err == nil })
}

func (r *machineSetReconciler) createOne(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet) error {
	m, err := machineset.NewMachine(set, machineset.Suffix(r.cfg.Random))
	if err != nil {
		return err
	}
	r.cfg.own(m)
	name, now := m.Name, r.cfg.Clock.Now()
	r.expect(set, func(e machine.Expectations) machine.Expectations { return e.Creating(machine.KindMachine, name, now) })
	_, err = client.Create(ctx, m, metav1.CreateOptions{})
	err = r.settle(ctx, client, set, name, true, err)
	r.report(ctx, set, machineset.Create{}.Event(name, err), err)
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
func (r *machineSetReconciler) settle(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, name string, creates bool, err error) error {
	look := false
	r.expect(set, func(e machine.Expectations) machine.Expectations {
		e, look = e.Failed(machine.KindMachine, name, err)
		return e
	})
	if !look {
		return err
	}
	live, lookErr := r.look(ctx, client, set, name)
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
