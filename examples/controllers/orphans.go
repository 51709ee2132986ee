// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// orphans deletes VMs and side resources without a machine. Each class is listed in a pass of its
// own, so that a slow listing does not block the others. Listings that overlap are decided
// together, with one list of the machines.
type orphans struct {
	*loop
	cfg         *Config
	classes     listers.MachineClassLister
	reader      runner.Reader
	nodes       corelisters.NodeLister // nil without a target cluster
	nodesSynced func() bool

	asking atomic.Int32 // listings that have not ended

	mu      sync.Mutex
	state   safety.State                            // of all classes; without it deletions only take longer
	listed  map[types.NamespacedName]safety.Listing // listings since the last decision
	since   time.Time                               // the first of them
	round   time.Time                               // the next listing of the classes
	askedAt map[cache.ObjectName]time.Time          // the time of the last listing, by class
	gone    map[string]deletedVM                    // deleted VMs, by provider ID
	failed  map[string]safety.DeleteVM              // VMs with a failed deletion, by provider ID
}

// decideKey is the key of the pass that decides about the listings. No class has an empty name.
var decideKey = cache.ObjectName{}

const (
	// together is how long a listing waits for those of other classes.
	together = time.Second
	// atMost is how long it waits for a listing of another class that does not end.
	atMost = time.Minute
	// wakeInterval is the least time between two listings of a class because of wake.
	wakeInterval = time.Minute
)

func newOrphans(cfg *Config, c *caches) (*orphans, error) {
	reader, err := c.reader()
	if err != nil {
		return nil, err
	}
	api := c.machines.Machine().V1alpha1()
	r := &orphans{
		cfg: cfg, classes: api.MachineClasses().Lister(), reader: reader,
		listed: map[types.NamespacedName]safety.Listing{}, askedAt: map[cache.ObjectName]time.Time{},
		gone: map[string]deletedVM{}, failed: map[string]safety.DeleteVM{},
	}
	if c.target != nil {
		r.nodes, r.nodesSynced = c.target.Core().V1().Nodes().Lister(), c.nodesSynced
	}
	r.loop = newLoop(cfg, "orphan", r.pass)
	on(api.MachineClasses().Informer(), each(func(c *v1alpha1.MachineClass) { r.add(c) }))
	onDelete(api.Machines().Informer(), func(m *v1alpha1.Machine) {
		r.wake(types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Class.Name})
	})
	return r, nil
}

// wake requests a listing of a class soon, because a machine was deleted or has a second VM. A
// class is listed at most once per wakeInterval because of it.
func (r *orphans) wake(key types.NamespacedName) {
	class := cache.ObjectName(key)
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
		return r.decideAll(ctx)
	case nodesKey:
		return r.deleteNodes(ctx)
	}
	class, secret, err := r.read(ctx, key)
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
		r.since = listing.VMs.AsOf
	}
	r.listed[listing.Class] = listing
	r.queue.AddAfter(decideKey, together)
	return time.Time{}, nil
}

// read returns a class of the shard and its secret.
func (r *orphans) read(ctx context.Context, key cache.ObjectName) (*v1alpha1.MachineClass, *corev1.Secret, error) {
	class, err := r.classes.MachineClasses(key.Namespace).Get(key.Name)
	switch {
	case err != nil:
		return nil, nil, err
	case !r.cfg.mine(class):
		return nil, nil, apierrors.NewNotFound(v1alpha1.Resource("machineclasses"), key.Name)
	}
	secret, err := runners.MergedSecret(ctx, r.reader, class)
	return class, secret, err
}

// decideAll reads the machines after the listings, decides, and applies the actions. It also
// requests the next listing of the classes. While a listing has not ended, it returns until when
// it waits for that.
func (r *orphans) decideAll(ctx context.Context) (time.Time, error) {
	in := safety.Observation{Namespace: cmp.Or(r.cfg.Namespace, safety.AllNamespaces)}
	r.mu.Lock()
	in.Listings = slices.Collect(maps.Values(r.listed))
	end := r.since.Add(atMost)
	r.mu.Unlock()
	switch {
	case len(in.Listings) == 0:
		return time.Time{}, nil
	case r.asking.Load() > 0 && r.cfg.Clock.Now().Before(end):
		return end, nil
	}
	var err error
	if in.Machines, err = r.machines(ctx); err != nil {
		return time.Time{}, err
	}
	if err := r.observeNodes(&in); err != nil {
		return time.Time{}, err
	}
	d := r.step(in)
	r.cfg.holds.set(r.kind, cache.ObjectName{}, r.cfg.Clock.Now(), d.Holds, nil)
	r.cfg.note(Note{Kind: r.kind, Key: fmt.Sprintf("%d classes", len(in.Listings)), Text: d.String(), Holds: d.Holds, Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	for _, e := range d.Events {
		name, _ := cache.ParseObjectName(strings.TrimPrefix(e.Subject, "machineclass/"))
		if class, err := r.classes.MachineClasses(name.Namespace).Get(name.Name); err == nil {
			r.cfg.event(class, e)
		}
	}
	r.confirm(in.Listings)
	for _, a := range d.Actions {
		if err := r.apply(ctx, a); err != nil {
			if ctx.Err() != nil {
				return time.Time{}, err
			}
			r.cfg.note(Note{Kind: r.kind, Key: a.String(), Text: a.String(), Acts: true, Err: err}) // the next decision repeats it
		}
	}
	r.requeue(in.Listings, d.NextCheck)
	return time.Time{}, nil
}

// requeue requests the next listing of the decided classes, together with that of the others, and
// a decision about the listings that arrived meanwhile.
func (r *orphans) requeue(judged []safety.Listing, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.round.After(r.cfg.Clock.Now()) || at.Before(r.round) {
		r.round = at
	}
	for _, l := range judged {
		if r.listed[l.Class].VMs.AsOf.Equal(l.VMs.AsOf) {
			delete(r.listed, l.Class)
		}
		if !at.IsZero() {
			r.queue.AddAfter(cache.NewObjectName(l.Class.Namespace, l.Class.Name), r.round.Sub(r.cfg.Clock.Now()))
		}
	}
	if r.since = r.cfg.Clock.Now(); len(r.listed) > 0 {
		r.queue.AddAfter(decideKey, together)
	}
}

// step makes one decision. Decisions are not made concurrently.
func (r *orphans) step(in safety.Observation) (d safety.Decision[machinist.Action]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, d = safety.Step(r.state, in, r.cfg.Orphans, r.cfg.Clock.Now())
	return d
}

// machines lists all machines from the API server.
func (r *orphans) machines(ctx context.Context) (drain.List[*v1alpha1.Machine], error) {
	asked := r.cfg.Clock.Now()
	items, err := runners.List[*v1alpha1.Machine](ctx, client.New(r.cfg.Machines, nil), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: r.cfg.Namespace}}, nil)
	return drain.List[*v1alpha1.Machine]{AsOf: asked, Items: items, Complete: err == nil}, err
}

// observeNodes adds the classes of the shard and the Nodes of the cache, except those with the label
// of another shard. The cache suffices, because a Node without machine and VM is only reported.
func (r *orphans) observeNodes(in *safety.Observation) error {
	if r.nodes == nil || !r.nodesSynced() {
		return nil
	}
	classes, err := r.classes.List(labels.Everything())
	for _, class := range classes {
		if r.cfg.mine(class) {
			in.Classes = append(in.Classes, types.NamespacedName{Namespace: class.Namespace, Name: class.Name})
		}
	}
	nodes, nodesErr := r.nodes.List(labels.Everything())
	for _, node := range nodes {
		if shard, ok := node.Labels[v1alpha1.ShardLabelKey]; !ok || shard == r.cfg.Shard {
			in.Nodes.Items = append(in.Nodes.Items, node)
		}
	}
	err = errors.Join(err, nodesErr)
	in.Nodes.AsOf, in.Nodes.Complete = r.cfg.Clock.Now(), err == nil
	return err
}
