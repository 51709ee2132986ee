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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// orphans deletes VMs without a machine. Each class is listed by itself, so that a slow
// one holds up no other; what was listed within a moment is judged together, against
// one list of the machines.
type orphans struct {
	*loop
	cfg     *Config
	classes listers.MachineClassLister
	secret  secretReader
	nodes   func(providerID string) []*corev1.Node // nil without a target cluster

	mu     sync.Mutex
	state  safety.State                            // of all classes; losing it costs time, never safety
	listed map[types.NamespacedName]safety.Listing // and not judged yet
}

// judgeKey asks the loop to judge what is listed. No class has an empty name.
var judgeKey = cache.ObjectName{}

// together is how long listings wait for those of other classes.
const together = time.Second

func newOrphans(cfg *Config, c *caches) *orphans {
	api := c.machines.Machine().V1alpha1()
	r := &orphans{cfg: cfg, classes: api.MachineClasses().Lister(), secret: c.secret(), nodes: c.nodesOfID, listed: map[types.NamespacedName]safety.Listing{}}
	r.loop = newLoop(cfg, "orphan", r.pass)
	on(api.MachineClasses().Informer(), each(func(c *v1alpha1.MachineClass) { r.add(c) }))
	return r
}

// pass lists the VMs of a class, or judges what was listed.
func (r *orphans) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	if key == judgeKey {
		return time.Time{}, r.judge(ctx)
	}
	class, secret, err := r.read(key)
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	listing := r.list(ctx, class, secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.listed) == 0 {
		r.queue.AddAfter(judgeKey, together)
	}
	r.listed[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}] = listing
	return time.Time{}, nil
}

// read returns a class and its secret.
func (r *orphans) read(key cache.ObjectName) (*v1alpha1.MachineClass, *corev1.Secret, error) {
	class, err := r.classes.MachineClasses(key.Namespace).Get(key.Name)
	if err != nil {
		return nil, nil, err
	}
	secret, err := mergedSecret(class, r.secret)
	return class, secret, err
}

// judge reads the machines, after the VMs, and acts on what follows. The classes are
// listed again when that is due.
func (r *orphans) judge(ctx context.Context) error {
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
	d := r.step(in)
	r.cfg.note(Note{Kind: r.kind, Key: fmt.Sprintf("%d classes", len(in.Listings)), Text: d.String(), Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	for _, a := range d.Actions {
		if err := r.act(ctx, a); err != nil {
			if ctx.Err() != nil {
				return err
			}
			r.cfg.note(Note{Kind: r.kind, Key: a.String(), Text: a.String(), Acts: true, Err: err}) // proposed again later
		}
	}
	r.again(in.Listings, d.NextCheck)
	return nil
}

// again has the classes listed anew that were judged, and those judged that were
// listed meanwhile.
func (r *orphans) again(judged []safety.Listing, at time.Time) {
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
		r.queue.AddAfter(judgeKey, together)
	}
}

// step decides, one judgement at a time.
func (r *orphans) step(in safety.Observation) (d safety.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, d = safety.Step(r.state, in, r.cfg.Orphans, r.cfg.Clock.Now())
	return d
}

// list asks the cloud for the VMs of a class.
func (r *orphans) list(ctx context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) safety.Listing {
	var vms map[string]string
	response, err := r.cfg.Driver.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class, Secret: secret})
	if response != nil {
		vms = response.MachineList
	}
	return safety.List(types.NamespacedName{Namespace: class.Namespace, Name: class.Name}, vms, err, r.cfg.Clock.Now())
}

// machines reads all machines from the API server, not from a cache.
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

// act deletes a VM, after a last look at the machine of its name.
func (r *orphans) act(ctx context.Context, do safety.Action) error {
	switch a := do.(type) {
	case safety.DeleteVM:
		class, secret, err := r.read(cache.NewObjectName(a.Namespace, a.Class))
		if err != nil {
			return err
		}
		live, err := r.cfg.Machines.MachineV1alpha1().Machines(a.Namespace).Get(ctx, a.MachineName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			live = nil
		case err != nil:
			return err
		}
		if !a.StillRight(live) {
			return nil
		}
		_, err = r.cfg.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: a.Machine(), MachineClass: class, Secret: secret})
		if err != nil && codes.Of(err) != codes.NotFound {
			return err
		}
		return r.deleteNodes(ctx, a)
	default:
		return fmt.Errorf("unknown action %T", do)
	}
}

// deleteNodes deletes the Node of a VM that is gone: no machine is left to do that.
func (r *orphans) deleteNodes(ctx context.Context, a safety.DeleteVM) error {
	for _, id := range providerIDs(a.ProviderID) {
		if r.nodes == nil {
			return nil
		}
		for _, node := range r.nodes(id) {
			if !a.OwnsNode(node) {
				continue
			}
			if _, err := deleteNode(ctx, r.cfg.Target, node); err != nil {
				return err
			}
		}
	}
	return nil
}
