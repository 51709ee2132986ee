// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	api "github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// machineDeployments replaces one generation of machines by the next.
type machineDeployments struct {
	*loop
	cfg      *Config
	sets     listers.MachineSetLister
	machines listers.MachineLister

	mu      sync.Mutex
	written map[cache.ObjectName]map[string]string // deployment -> set -> resource version that the cache has to show
}

func newMachineDeployments(cfg *Config, c *caches) *machineDeployments {
	informers := c.machines.Machine().V1alpha1()
	r := &machineDeployments{
		cfg: cfg, sets: informers.MachineSets().Lister(), machines: informers.Machines().Lister(), written: map[cache.ObjectName]map[string]string{},
	}
	r.loop = newLoop(cfg, "machinedeployment", r.pass)
	all := index(informers.MachineDeployments().Informer(), "namespace-of-deployment", func(d *api.MachineDeployment) []string { return []string{d.Namespace} })
	on(informers.MachineDeployments().Informer(), each(func(d *api.MachineDeployment) { r.add(d) }))
	on(informers.MachineSets().Informer(), each(func(s *api.MachineSet) {
		if r.addOwner(s) {
			return
		}
		for _, d := range all(s.Namespace) { // an orphan: anybody may want it
			r.add(d)
		}
	}))
	return r
}

// catchUp is when a cache is looked at again that is behind our own writes.
const catchUp = 20 * time.Millisecond

func (r *machineDeployments) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	d, err := r.cfg.Machines.MachineV1alpha1().MachineDeployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	in, fresh, err := r.observe(ctx, key, d)
	if err != nil || !fresh {
		return r.cfg.Clock.Now().Add(catchUp), err
	}
	decision, err := r.decide(ctx, key, in)
	if err != nil {
		return time.Time{}, err
	}
	return decision.NextCheck, nil
}

// decide decides and acts, once more if the name of a new set was taken.
func (r *machineDeployments) decide(ctx context.Context, key cache.ObjectName, in deployment.Observation) (deployment.Decision, error) {
	d := deployment.Decide(in, deployment.Policy{}, r.cfg.Clock.Now())
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	if err := r.record(ctx, in.Deployment, d); err != nil {
		return d, err
	}
	for _, e := range d.Events {
		r.cfg.event(in.Deployment, e)
	}
	for _, action := range d.Actions {
		err := r.act(ctx, key, in, action)
		create, creating := action.(deployment.CreateSet)
		if creating && apierrors.IsAlreadyExists(err) && in.NameTakenBy == nil {
			taken, getErr := r.cfg.Machines.MachineV1alpha1().MachineSets(create.Set.Namespace).Get(ctx, create.Set.Name, metav1.GetOptions{})
			if getErr != nil {
				return d, getErr
			}
			in.NameTakenBy = taken
			return r.decide(ctx, key, in)
		}
		if creating && err != nil && ctx.Err() == nil {
			failed := deployment.Decision{WriteStatus: true}
			var event machine.Event
			failed.Status, event = deployment.CreateFailed(in.Deployment.Status, create.Set.Name, err, r.cfg.Clock.Now())
			r.cfg.event(in.Deployment, event)
			err = errors.Join(err, r.record(ctx, in.Deployment, failed))
		}
		if err != nil {
			return d, fmt.Errorf("%s: %w", action, err)
		}
		if e := action.Event(); e != nil {
			r.cfg.event(in.Deployment, *e)
		}
	}
	return d, nil
}

// observe gathers the sets of a deployment, adopting and releasing them where
// that is due. It returns false if the cache does not show our own writes yet.
func (r *machineDeployments) observe(ctx context.Context, key cache.ObjectName, d *api.MachineDeployment) (deployment.Observation, bool, error) {
	sets, err := r.sets.MachineSets(d.Namespace).List(labels.Everything())
	if err != nil {
		return deployment.Observation{}, false, err
	}
	if fresh, err := r.shows(ctx, key, sets); err != nil || !fresh {
		return deployment.Observation{}, false, err
	}
	machines, err := r.machines.Machines(d.Namespace).List(labels.Everything())
	if err != nil {
		return deployment.Observation{}, false, err
	}
	claims := machineset.Claim(machineset.OwnerDeployment(d), d.Spec.Selector, sets)
	patch := r.cfg.Machines.MachineV1alpha1().MachineSets(d.Namespace).Patch
	if err := adoptAndRelease(ctx, machineset.OwnerDeployment(d), d, claims, patch); err != nil {
		return deployment.Observation{}, false, err
	}
	return deployment.Observation{Deployment: d, Sets: claims.Owned, Complete: claims.Settled(), Machines: machines}, true, nil
}

// record writes the status of a deployment, if it has changed, and keeps what is
// stored then.
func (r *machineDeployments) record(ctx context.Context, d *api.MachineDeployment, decision deployment.Decision) error {
	if !decision.WriteStatus {
		return nil
	}
	next := d.DeepCopy()
	next.Status = decision.Status
	written, err := r.cfg.Machines.MachineV1alpha1().MachineDeployments(d.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		d.ResourceVersion, d.Status = written.ResourceVersion, written.Status
	}
	return ignoreNotFound(err)
}

// act carries out one action of a decision.
func (r *machineDeployments) act(ctx context.Context, key cache.ObjectName, in deployment.Observation, action deployment.Action) error {
	sets := r.cfg.Machines.MachineV1alpha1().MachineSets(in.Deployment.Namespace)
	switch a := action.(type) {
	case deployment.CreateSet:
		return r.wrote(key)(sets.Create(ctx, a.Set, metav1.CreateOptions{}))
	case deployment.UpdateSet:
		return r.wrote(key)(sets.Update(ctx, a.Set, metav1.UpdateOptions{}))
	case deployment.Scale:
		i := slices.IndexFunc(in.Sets, func(s *api.MachineSet) bool { return s.UID == a.UID })
		if i < 0 {
			return fmt.Errorf("set %s is not among those observed", a.Name)
		}
		next := a.Apply(in.Sets[i])
		if next == nil {
			return fmt.Errorf("set %s has changed", a.Name)
		}
		return r.wrote(key)(sets.Update(ctx, next, metav1.UpdateOptions{}))
	case deployment.DeleteSet:
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))}
		if a.ResourceVersion != "" {
			options.Preconditions.ResourceVersion = &a.ResourceVersion
		}
		return ignoreNotFound(sets.Delete(ctx, a.Name, options))
	case deployment.AddFinalizer:
		return r.patch(ctx, in.Deployment, map[string]any{"finalizers": append(slices.Clone(in.Deployment.Finalizers), a.Finalizer)})
	case deployment.RemoveFinalizer:
		rest := slices.DeleteFunc(slices.Clone(in.Deployment.Finalizers), func(f string) bool { return f == a.Finalizer })
		return r.patch(ctx, in.Deployment, map[string]any{"finalizers": rest})
	case deployment.Annotate:
		return r.patch(ctx, in.Deployment, map[string]any{"annotations": a.Annotations})
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// patch changes the metadata of a deployment, unless somebody else has changed
// it since it was read.
func (r *machineDeployments) patch(ctx context.Context, d *api.MachineDeployment, metadata map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = d.UID, d.ResourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	written, err := r.cfg.Machines.MachineV1alpha1().MachineDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		d.ResourceVersion = written.ResourceVersion
	}
	return ignoreNotFound(err)
}

// wrote remembers that the cache has to show a write before the deployment is
// decided about again.
func (r *machineDeployments) wrote(key cache.ObjectName) func(*api.MachineSet, error) error {
	return func(s *api.MachineSet, err error) error {
		if err != nil {
			return ignoreNotFound(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.written[key] == nil {
			r.written[key] = map[string]string{}
		}
		r.written[key][s.Name] = s.ResourceVersion
		return nil
	}
}

// shows says whether sets from the cache are as new as our own writes. A set that
// the cache does not have may be gone for good: a live read tells.
func (r *machineDeployments) shows(ctx context.Context, key cache.ObjectName, sets []*api.MachineSet) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, want := range r.written[key] {
		i := slices.IndexFunc(sets, func(s *api.MachineSet) bool { return s.Name == name })
		if i < 0 {
			_, err := r.cfg.Machines.MachineV1alpha1().MachineSets(key.Namespace).Get(ctx, name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return false, err
			}
		} else if order, err := resourceversion.CompareResourceVersion(sets[i].ResourceVersion, want); err != nil || order < 0 {
			return false, err
		}
		delete(r.written[key], name)
	}
	return true, nil
}
