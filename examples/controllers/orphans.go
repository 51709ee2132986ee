// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// orphans deletes VMs and side resources without a machine. Each class is listed in a pass of its
// own, so that a slow listing does not block the others. Listings within a second are decided
// together, with one list of the machines.
type orphans struct {
	*loop
	cfg       *Config
	classes   listers.MachineClassLister
	secret    secretReader
	nodesOfID func(providerID string) []*corev1.Node // nil without a target cluster
	nodes     corelisters.NodeLister                 // nil without a target cluster

	mu           sync.Mutex
	state        safety.State                            // of all classes; without it deletions only take longer
	listed       map[types.NamespacedName]safety.Listing // listings since the last decision
	askedAt      map[cache.ObjectName]time.Time          // the time of the last listing, by class
	reportedHeld map[types.NamespacedName]bool           // classes whose hold has an Event
	gone         map[string]deletedVM                    // deleted VMs, by provider ID
	failed       map[string]safety.DeleteVM              // VMs with a failed deletion, by provider ID
}

// decideKey is the key of the pass that decides about the listings. No class has an empty name.
var decideKey = cache.ObjectName{}

const (
	// together is how long a listing waits for those of other classes.
	together = time.Second
	// wakeInterval is the least time between two listings of a class because of wake.
	wakeInterval = time.Minute
)

func newOrphans(cfg *Config, c *caches) *orphans {
	api := c.machines.Machine().V1alpha1()
	r := &orphans{
		cfg: cfg, classes: api.MachineClasses().Lister(), secret: c.secret(), nodesOfID: c.nodesOfID,
		listed: map[types.NamespacedName]safety.Listing{}, askedAt: map[cache.ObjectName]time.Time{}, reportedHeld: map[types.NamespacedName]bool{},
		gone: map[string]deletedVM{}, failed: map[string]safety.DeleteVM{},
	}
	if c.target != nil {
		r.nodes = c.target.Core().V1().Nodes().Lister()
	}
	r.loop = newLoop(cfg, "orphan", r.pass)
	on(api.MachineClasses().Informer(), each(func(c *v1alpha1.MachineClass) { r.add(c) }))
	onDelete(api.Machines().Informer(), func(m *v1alpha1.Machine) { r.wake(classKey(m)) })
	return r
}

// wake requests a listing of a class soon, because a machine was deleted or has a second VM. A
// class is listed at most once per wakeInterval because of it.
func (r *orphans) wake(class cache.ObjectName) {
	r.mu.Lock()
	asked, ok := r.askedAt[class]
	r.mu.Unlock()
	var wait time.Duration
	if ok {
		wait = max(0, asked.Add(wakeInterval).Sub(r.cfg.Clock.Now()))
	}
	r.queue.AddAfter(class, wait)
}

// pass lists the VMs of a class, or decides about the listings.
func (r *orphans) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	if freeze := r.cfg.freeze.now(); freeze.Frozen {
		h := freeze.Hold(r.cfg.Clock.Now())
		r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: h.String(), Reason: h.Reason, Holds: []machinist.Hold{h}, Waits: true})
		return h.Until, nil
	}
	switch key {
	case decideKey:
		return time.Time{}, r.decideAll(ctx)
	case nodesKey:
		return r.deleteNodes(ctx)
	}
	class, secret, err := r.read(key)
	if err != nil {
		r.mu.Lock()
		delete(r.askedAt, key)
		r.mu.Unlock()
		return time.Time{}, ignoreNotFound(err)
	}
	r.mu.Lock()
	r.askedAt[key] = r.cfg.Clock.Now()
	r.mu.Unlock()
	listing := r.list(ctx, class, secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.listed) == 0 {
		r.queue.AddAfter(decideKey, together)
	}
	r.listed[listing.Class] = listing
	return time.Time{}, nil
}

// read returns a class of the shard and its secret.
func (r *orphans) read(key cache.ObjectName) (*v1alpha1.MachineClass, *corev1.Secret, error) {
	class, err := r.classes.MachineClasses(key.Namespace).Get(key.Name)
	switch {
	case err != nil:
		return nil, nil, err
	case !r.cfg.mine(class):
		return nil, nil, apierrors.NewNotFound(v1alpha1.Resource("machineclasses"), key.Name)
	}
	secret, err := mergedSecret(class, r.secret)
	return class, secret, err
}

// decideAll reads the machines after the listings, decides, and applies the actions. It also
// requests the next listing of the classes.
func (r *orphans) decideAll(ctx context.Context) error {
	in := safety.Observation{Namespace: r.cfg.Namespace}
	if in.Namespace == metav1.NamespaceAll {
		in.Namespace = safety.AllNamespaces
	}
	r.mu.Lock()
	for _, listing := range r.listed {
		in.Listings = append(in.Listings, listing)
	}
	r.mu.Unlock()
	var err error
	if in.Machines, err = r.machines(ctx); err != nil {
		return err
	}
	in.Nodes = r.allNodes(in.Listings)
	d := r.step(in)
	r.cfg.holds.set(r.kind, cache.ObjectName{}, r.cfg.Clock.Now(), d.Holds, nil)
	r.cfg.note(Note{Kind: r.kind, Key: fmt.Sprintf("%d classes", len(in.Listings)), Text: d.String(), Holds: d.Holds, Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	r.reportHeldClasses(in.Listings, d.Holds)
	r.confirm(in.Listings)
	for _, a := range d.Actions {
		if err := r.apply(ctx, a); err != nil {
			if ctx.Err() != nil {
				return err
			}
			r.cfg.note(Note{Kind: r.kind, Key: a.String(), Text: a.String(), Acts: true, Err: err}) // the next decision repeats it
		}
	}
	r.requeue(in.Listings, d.NextCheck)
	return nil
}

// requeue requests the next listing of the decided classes, and a decision about the listings that
// arrived meanwhile.
func (r *orphans) requeue(judged []safety.Listing, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range judged {
		if r.listed[l.Class].VMs.AsOf.Equal(l.VMs.AsOf) {
			delete(r.listed, l.Class)
		}
		if !at.IsZero() {
			r.queue.AddAfter(cache.NewObjectName(l.Class.Namespace, l.Class.Name), at.Sub(r.cfg.Clock.Now()))
		}
	}
	if len(r.listed) > 0 {
		r.queue.AddAfter(decideKey, together)
	}
}

// step makes one decision. Decisions are not made concurrently.
func (r *orphans) step(in safety.Observation) (d safety.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, d = safety.Step(r.state, in, r.cfg.Orphans, r.cfg.Clock.Now())
	return d
}

// machines lists all machines from the API server.
func (r *orphans) machines(ctx context.Context) (safety.View[*v1alpha1.Machine], error) {
	view := safety.View[*v1alpha1.Machine]{AsOf: r.cfg.Clock.Now()}
	list, err := r.cfg.Machines.MachineV1alpha1().Machines(r.cfg.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return view, err
	}
	for i := range list.Items {
		view.Items = append(view.Items, &list.Items[i])
	}
	view.Complete = list.Continue == ""
	return view, nil
}

// allNodes returns the Nodes of the cache if every class is listed. The cache suffices, because a
// Node without machine and VM is only reported.
func (r *orphans) allNodes(listings []safety.Listing) (view safety.View[*corev1.Node]) {
	classes, err := r.classes.List(labels.Everything())
	if r.nodes == nil || err != nil || len(classes) != len(listings) {
		return view
	}
	view.AsOf = r.cfg.Clock.Now()
	view.Items, err = r.nodes.List(labels.Everything())
	view.Complete = err == nil
	return view
}
