// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	api "github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// machineSets keeps the number of machines of sets.
type machineSets struct {
	*loop
	cfg      *Config
	machines listers.MachineLister
	node     func(name string) (*corev1.Node, error)

	mu       sync.Mutex
	inFlight map[types.UID]machineset.InFlight
}

func newMachineSets(cfg *Config, c *caches) *machineSets {
	informers := c.machines.Machine().V1alpha1()
	r := &machineSets{cfg: cfg, machines: informers.Machines().Lister(), inFlight: map[types.UID]machineset.InFlight{}}
	if c.target != nil {
		r.node = c.target.Core().V1().Nodes().Lister().Get
	}
	r.loop = newLoop(cfg, "machineset", r.pass)
	all := index(informers.MachineSets().Informer(), "namespace-of-set", func(s *api.MachineSet) []string { return []string{s.Namespace} })
	on(informers.MachineSets().Informer(), each(func(s *api.MachineSet) { r.add(s) }))
	on(informers.Machines().Informer(), func(before, after *api.Machine) {
		if machine.OnMachine(before, after)&machine.WakeOwner == 0 {
			return
		}
		each(func(m *api.Machine) {
			if r.addOwner(m) {
				return
			}
			for _, s := range all(m.Namespace) { // an orphan: anybody may want it
				r.add(s)
			}
		})(before, after)
	})
	return r
}

func (r *machineSets) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	set, err := r.cfg.Machines.MachineV1alpha1().MachineSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	in, err := r.observe(ctx, set)
	if err != nil {
		return time.Time{}, err
	}
	d := machineset.Decide(in, machineset.Policy{}, r.cfg.Clock.Now())
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	failure, err := r.act(ctx, in, d.Actions)
	if statusErr := r.record(ctx, in, failure); err == nil {
		err = statusErr
	}
	return d.NextCheck, errors.Join(err, failure.Create, failure.Delete)
}

// observe gathers what is known of a set: its machines, adopting and releasing
// them where that is due, what is in flight, and the Nodes of failed machines.
func (r *machineSets) observe(ctx context.Context, set *api.MachineSet) (machineset.Observation, error) {
	machines, err := r.machines.Machines(set.Namespace).List(labels.Everything())
	if err != nil {
		return machineset.Observation{}, err
	}
	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, machines)
	patch := r.cfg.Machines.MachineV1alpha1().Machines(set.Namespace).Patch
	if err := adoptAndRelease(ctx, machineset.OwnerSet(set), set, claims, patch); err != nil {
		return machineset.Observation{}, err
	}
	return machineset.Observation{
		Set: set, Machines: claims.Owned, Complete: claims.Settled(),
		InFlight: r.flight(set.UID, func(f machineset.InFlight) machineset.InFlight { return f.Observe(machines, true) }),
		Nodes:    r.nodes(claims.Owned),
	}, nil
}

// nodes looks at the Nodes of failed machines.
func (r *machineSets) nodes(machines []*api.Machine) map[string]machineset.NodeView {
	views := map[string]machineset.NodeView{}
	for _, m := range machines {
		name := m.Labels[api.NodeLabelKey]
		if name == "" || !machineset.Failed(m) {
			continue
		}
		if r.node == nil {
			views[name] = machineset.NodeView{}
			continue
		}
		if node, err := r.node(name); ignoreNotFound(err) == nil {
			views[name] = machineset.ViewNode(node)
		}
	}
	return views
}

// flight changes what is in flight for a set, and returns it.
func (r *machineSets) flight(set types.UID, change func(machineset.InFlight) machineset.InFlight) machineset.InFlight {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := change(r.inFlight[set])
	if f.Empty() {
		delete(r.inFlight, set)
	} else {
		r.inFlight[set] = f
	}
	return f
}

// act carries out the actions of a decision.
func (r *machineSets) act(ctx context.Context, in machineset.Observation, actions []machineset.Action) (machineset.Failure, error) {
	var failure machineset.Failure
	client := r.cfg.Machines.MachineV1alpha1().Machines(in.Set.Namespace)
	for _, action := range actions {
		var err error
		switch a := action.(type) {
		case machineset.AddFinalizer:
			err = r.finalizers(ctx, in.Set, a.Edit)
		case machineset.RemoveFinalizer:
			err = r.finalizers(ctx, in.Set, a.Edit)
		case machineset.Sync:
			err = r.sync(ctx, client, in.Machines, a)
		case machineset.Look:
			err = r.look(ctx, client, in.Set, a.Name)
		case machineset.Delete:
			failure.Delete = errors.Join(failure.Delete, r.delete(ctx, client, in.Set, a))
		case machineset.Create:
			failure.Create = r.create(ctx, client, in.Set, a.Count)
		default:
			err = fmt.Errorf("unknown action %T", action)
		}
		if err != nil {
			return failure, fmt.Errorf("%s: %w", action, err)
		}
	}
	return failure, nil
}

func (r *machineSets) finalizers(ctx context.Context, set *api.MachineSet, edit machineset.FinalizersEdit) error {
	patch, err := edit.Patch()
	if err != nil {
		return err
	}
	written, err := r.cfg.Machines.MachineV1alpha1().MachineSets(set.Namespace).Patch(ctx, edit.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil { // the status is written after this
		set.ResourceVersion, set.Finalizers = written.ResourceVersion, written.Finalizers
	}
	return ignoreNotFound(err)
}

func (r *machineSets) sync(ctx context.Context, client v1alpha1.MachineInterface, machines []*api.Machine, a machineset.Sync) error {
	for _, m := range machines {
		if next := a.Apply(m); next != nil {
			_, err := client.Update(ctx, next, metav1.UpdateOptions{})
			return ignoreNotFound(err)
		}
	}
	return nil
}

// look reads a machine live, to settle what is in flight for it.
func (r *machineSets) look(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, name string) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err == nil {
		r.flight(set.UID, func(f machineset.InFlight) machineset.InFlight { return f.Looked(name, live, r.cfg.Clock.Now()) })
	}
	return err
}

func (r *machineSets) delete(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, a machineset.Delete) error {
	now := r.cfg.Clock.Now()
	r.flight(set.UID, func(f machineset.InFlight) machineset.InFlight { return f.Deleting(a.Name, a.UID, now) })
	err := client.Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))})
	if err == nil || !apierrors.IsNotFound(err) && ctx.Err() == nil {
		r.cfg.event(set, machineset.Deleted(a.Name, err))
	}
	return r.settle(ctx, client, set, a.Name, ignoreNotFound(err))
}

// create makes machines in batches that double, and stops after the first batch
// in which something failed.
func (r *machineSets) create(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, count int) error {
	for _, batch := range machineset.Batches(count) {
		var failed error
		for range batch {
			failed = errors.Join(failed, r.createOne(ctx, client, set))
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

func (r *machineSets) createOne(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet) error {
	name, err := machineset.Name(set, machineset.Suffix(r.cfg.Random))
	if err != nil {
		return err
	}
	m, err := machineset.NewMachine(set, name)
	if err != nil {
		return err
	}
	now := r.cfg.Clock.Now()
	r.flight(set.UID, func(f machineset.InFlight) machineset.InFlight { return f.Creating(name, now) })
	_, err = client.Create(ctx, m, metav1.CreateOptions{})
	if err == nil || ctx.Err() == nil {
		r.cfg.event(set, machineset.Created(name, err))
	}
	return r.settle(ctx, client, set, name, err)
}

// settle takes the answer to a request into account for what is in flight.
func (r *machineSets) settle(ctx context.Context, client v1alpha1.MachineInterface, set *api.MachineSet, name string, err error) error {
	look := false
	r.flight(set.UID, func(f machineset.InFlight) machineset.InFlight {
		f, look = f.Failed(name, err)
		return f
	})
	if look {
		return errors.Join(err, r.look(ctx, client, set, name))
	}
	return err
}

// record writes the status of a set, if it has changed.
func (r *machineSets) record(ctx context.Context, in machineset.Observation, failure machineset.Failure) error {
	next := machineset.Status(in, failure, r.cfg.Clock.Now())
	gone := in.Set.DeletionTimestamp != nil && len(in.Set.Finalizers) == 0
	if gone || !machineset.StatusChanged(in.Set.Status, next) {
		return nil
	}
	set := in.Set.DeepCopy()
	set.Status = next
	_, err := r.cfg.Machines.MachineV1alpha1().MachineSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}
