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

// overshoots freezes sets that create more machines than they were asked for. All sets are
// looked at together, under one key.
type overshoots struct {
	*loop
	cfg         *Config
	deployments listers.MachineDeploymentLister
	sets        listers.MachineSetLister
	machines    listers.MachineLister
	state       safety.OvershootState // no two passes run at a time
}

func newOvershoots(cfg *Config, c *caches) *overshoots {
	api := c.machines.Machine().V1alpha1()
	r := &overshoots{cfg: cfg, deployments: api.MachineDeployments().Lister(), sets: api.MachineSets().Lister(), machines: api.Machines().Lister()}
	r.loop = newLoop(cfg, "overshoot", r.pass)
	soon := func() { r.queue.AddAfter(cache.ObjectName{}, gather) }
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

// freezeChanged reports whether an object was asked for something else, or what says
// whether it is frozen has changed.
func freezeChanged(before, after metav1.Object) bool {
	_, was := before.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	_, is := after.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	return was != is || before.GetGeneration() != after.GetGeneration() ||
		before.GetLabels()[v1alpha1.FreezeLabelKey] != after.GetLabels()[v1alpha1.FreezeLabelKey]
}

// pass decides about all sets and deployments. What is not written is decided again.
func (r *overshoots) pass(ctx context.Context, _ cache.ObjectName) (time.Time, error) {
	in, err := r.observe()
	if err != nil {
		return time.Time{}, err
	}
	state, d := safety.StepOvershoot(r.state, in, r.cfg.Overshoot, r.cfg.Clock.Now())
	if slices.ContainsFunc(d.Actions, freezesSet) {
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

// observe returns what the caches show. The lists belong to the caller.
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
	in.Complete = true // the caches were filled before the first pass
	return in, err
}

func freezesSet(w safety.FreezeWrite) bool { return w.Frozen && w.Set != nil }

// refresh reads the sets that are to be frozen, and their deployments, from the API server:
// the caches may show machines that were created for replicas which they do not show yet.
func (r *overshoots) refresh(ctx context.Context, in safety.OvershootObservation, writes []safety.FreezeWrite) error {
	api := r.cfg.SetClient.MachineV1alpha1()
	for _, w := range writes {
		if !freezesSet(w) {
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

// replace puts live into a list in the place of the object with a UID, or nil if live is
// another object or none.
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

// write carries out one write and reports it.
func (r *overshoots) write(ctx context.Context, w safety.FreezeWrite) error {
	api := r.cfg.SetClient.MachineV1alpha1()
	if w.Set != nil {
		client := api.MachineSets(w.Set.Namespace)
		if err := inTwo(ctx, w.Set, w.Frozen, client.Update, client.UpdateStatus); err != nil {
			return ignoreNotFound(err)
		}
		r.cfg.event(w.Set, *w.Event)
		return nil
	}
	client := api.MachineDeployments(w.Deployment.Namespace)
	if err := inTwo(ctx, w.Deployment, w.Frozen, client.Update, client.UpdateStatus); err != nil {
		return ignoreNotFound(err)
	}
	r.cfg.event(w.Deployment, *w.Event)
	return nil
}

// inTwo writes the metadata and the status of an object in two requests. A freeze begins
// with the label, which has the effect. An end begins with the status, because the
// annotation in the metadata is what asks for it.
func inTwo[T object](ctx context.Context, o T, metadataFirst bool, metadata, status func(context.Context, T, metav1.UpdateOptions) (T, error)) error {
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
