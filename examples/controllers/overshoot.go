// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// overshoots freezes sets that create more machines than their replicas. One pass decides about all
// sets.
type overshoots struct {
	*loop
	cfg         *Config
	deployments listers.MachineDeploymentLister
	sets        listers.MachineSetLister
	machines    listers.MachineLister
	state       safety.OvershootState // passes do not run concurrently
}

func newOvershoots(cfg *Config, c *caches) *overshoots {
	api := c.machines.Machine().V1alpha1()
	r := &overshoots{cfg: cfg, deployments: api.MachineDeployments().Lister(), sets: api.MachineSets().Lister(), machines: api.Machines().Lister()}
	r.loop = newLoop(cfg, "overshoot", r.pass)
	soon := func() { r.queue.AddAfter(cache.ObjectName{}, batchDelay) }
	on(api.Machines().Informer(), func(before, _ *v1alpha1.Machine) {
		if before == nil {
			soon()
		}
	})
	on(api.MachineSets().Informer(), func(before, after *v1alpha1.MachineSet) {
		if before == nil || after != nil && freezeChanged(before, after) {
			soon()
		}
	})
	on(api.MachineDeployments().Informer(), func(before, after *v1alpha1.MachineDeployment) {
		if before == nil || after != nil && freezeChanged(before, after) {
			soon()
		}
	})
	return r
}

// freezeChanged reports whether the spec, the freeze label or the unfreeze annotation of an object
// has changed.
func freezeChanged(before, after metav1.Object) bool {
	_, was := before.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	_, is := after.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	return was != is || before.GetGeneration() != after.GetGeneration() ||
		before.GetLabels()[v1alpha1.FreezeLabelKey] != after.GetLabels()[v1alpha1.FreezeLabelKey]
}

// pass decides about all sets and deployments. The next pass repeats failed writes.
func (r *overshoots) pass(ctx context.Context, _ cache.ObjectName) (time.Time, error) {
	in, err := r.observe()
	if err != nil {
		return time.Time{}, err
	}
	state, d := safety.StepOvershoot(r.state, in, r.cfg.Overshoot, r.cfg.Clock.Now())
	if slices.ContainsFunc(d.Actions, isSetFreeze) {
		if err := r.refresh(ctx, in, d.Actions); err != nil {
			return time.Time{}, err
		}
		state, d = safety.StepOvershoot(r.state, in, r.cfg.Overshoot, r.cfg.Clock.Now())
	}
	r.state = state
	r.cfg.holds.set(r.kind, cache.ObjectName{}, r.cfg.Clock.Now(), d.Holds, nil)
	r.cfg.note(Note{Kind: r.kind, Key: fmt.Sprintf("%d sets", len(in.Sets)), Text: d.String(), Holds: d.Holds, Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	for _, w := range d.Actions {
		if writeErr := r.write(ctx, w); writeErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", w, writeErr))
		}
	}
	return d.NextCheck, err
}

// observe returns the objects of the caches. The caller may change the lists.
func (r *overshoots) observe() (in safety.OvershootObservation, err error) {
	if in.Deployments, err = r.deployments.List(labels.Everything()); err != nil {
		return in, err
	}
	if in.Sets, err = r.sets.List(labels.Everything()); err != nil {
		return in, err
	}
	in.Deployments = slices.DeleteFunc(in.Deployments, func(d *v1alpha1.MachineDeployment) bool { return !r.cfg.mine(d) })
	in.Sets = slices.DeleteFunc(in.Sets, func(s *v1alpha1.MachineSet) bool { return !r.cfg.mine(s) })
	in.Machines, err = r.machines.List(labels.Everything())
	in.Complete = true // the caches were synced before the first pass
	return in, err
}

func isSetFreeze(w safety.FreezeWrite) bool { return w.Frozen && w.Set != nil }

// refresh reads the sets to freeze, and their deployments, from the API server. The caches may have
// machines for replicas that they do not have yet.
func (r *overshoots) refresh(ctx context.Context, in safety.OvershootObservation, writes []safety.FreezeWrite) error {
	api := r.cfg.SetClient.MachineV1alpha1()
	for _, w := range writes {
		if !isSetFreeze(w) {
			continue
		}
		set, err := api.MachineSets(w.Set.Namespace).Get(ctx, w.Set.Name, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
		replace(in.Sets, w.Set.UID, set)
		owner := metav1.GetControllerOfNoCopy(w.Set)
		if owner == nil {
			continue
		}
		d, err := api.MachineDeployments(w.Set.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
		replace(in.Deployments, owner.UID, d)
	}
	return nil
}

// replace replaces the object with the given UID in a list by live. If live is nil or has another
// UID, it replaces the object by nil.
func replace[T object](list []T, uid types.UID, live T) {
	var none T
	if live != none && live.GetUID() != uid {
		live = none
	}
	for i, o := range list {
		if o != none && o.GetUID() == uid {
			list[i] = live
		}
	}
}

// write makes one write and records its Event.
func (r *overshoots) write(ctx context.Context, w safety.FreezeWrite) error {
	api := r.cfg.SetClient.MachineV1alpha1()
	if w.Set != nil {
		client := api.MachineSets(w.Set.Namespace)
		if err := writeTwice(ctx, w.Set, w.Frozen, client.Update, client.UpdateStatus); err != nil {
			return ignoreNotFound(err)
		}
		r.cfg.event(w.Set, *w.Event)
		return nil
	}
	client := api.MachineDeployments(w.Deployment.Namespace)
	if err := writeTwice(ctx, w.Deployment, w.Frozen, client.Update, client.UpdateStatus); err != nil {
		return ignoreNotFound(err)
	}
	r.cfg.event(w.Deployment, *w.Event)
	return nil
}

// writeTwice writes the metadata and the status of an object in two requests. A freeze begins with
// the label, which has the effect. It ends with the metadata, because the annotation there requests
// the end.
func writeTwice[T object](ctx context.Context, o T, metadataFirst bool, metadata, status func(context.Context, T, metav1.UpdateOptions) (T, error)) error {
	first, second := status, metadata
	if metadataFirst {
		first, second = metadata, status
	}
	written, err := first(ctx, o, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	o.SetResourceVersion(written.GetResourceVersion())
	_, err = second(ctx, o, metav1.UpdateOptions{})
	return err
}
