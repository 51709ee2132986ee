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

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// overshootDelay is how long changes of machines are collected before the next pass over all sets.
const overshootDelay = time.Second

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
	soon := func() { r.queue.AddAfter(cache.ObjectName{}, overshootDelay) }
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
	return d.NextCheck, r.write(ctx, d.Actions)
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

// isSetFreeze reports whether an update freezes a set.
func isSetFreeze(u machinist.Update) bool {
	set, ok := u.Object.(*v1alpha1.MachineSet)
	return ok && u.Subresource == "" && set.Labels[v1alpha1.FreezeLabelKey] != ""
}

// refresh reads the sets to freeze, and their deployments, from the API server. The caches may have
// machines for replicas that they do not have yet.
func (r *overshoots) refresh(ctx context.Context, in safety.OvershootObservation, updates []machinist.Update) error {
	api := r.cfg.SetClient.MachineV1alpha1()
	for _, u := range updates {
		if !isSetFreeze(u) {
			continue
		}
		frozen := u.Object.(*v1alpha1.MachineSet) //nolint:forcetypeassert // isSetFreeze has asserted it
		set, err := api.MachineSets(frozen.Namespace).Get(ctx, frozen.Name, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
		replace(in.Sets, frozen.UID, set)
		owner := metav1.GetControllerOfNoCopy(frozen)
		if owner == nil {
			continue
		}
		d, err := api.MachineDeployments(frozen.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
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

// write makes the updates and records their Events. The second update of an object needs the resource
// version that the first returned, and is skipped if the first failed. Other objects are still written.
func (r *overshoots) write(ctx context.Context, updates []machinist.Update) (failed error) {
	written := map[types.UID]metav1.Object{}
	for _, u := range updates {
		o := u.Object.(owned) //nolint:forcetypeassert // all are sets and deployments
		if first, second := written[o.GetUID()]; second {
			if first == nil {
				continue
			}
			o.SetResourceVersion(first.GetResourceVersion())
		}
		now, err := runners.Update(ctx, client.New(r.cfg.SetClient, nil), u)
		stored, _ := now.(metav1.Object)
		if written[o.GetUID()] = stored; err == nil && u.Report != nil {
			r.cfg.event(o, *u.Report)
		}
		if err = ignoreNotFound(err); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", u, err))
		}
	}
	return failed
}
