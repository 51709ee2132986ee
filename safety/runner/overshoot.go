// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// owner is an object that owns machines: a set or a deployment.
type owner interface {
	metav1.Object
	runtime.Object
}

// reconcileOvershoot freezes sets that create too many machines.
func (e *Executor) reconcileOvershoot(ctx context.Context) (time.Time, error) {
	e.sets.mu.Lock()
	defer e.sets.mu.Unlock()
	in, err := e.observeOvershoot(ctx)
	if err != nil {
		return time.Time{}, err
	}
	state, d := safety.StepOvershoot(e.sets.state, in, e.Overshoot, e.now())
	if slices.ContainsFunc(d.Actions, isSetFreeze) {
		if err := e.refresh(ctx, in, d.Actions); err != nil {
			return time.Time{}, err
		}
		state, d = safety.StepOvershoot(e.sets.state, in, e.Overshoot, e.now())
	}
	e.sets.state = state
	decided(e, Overshoot, d)
	return d.NextCheck, e.writeFreezes(ctx, d.Actions)
}

// observeOvershoot returns all machines, and the sets and deployments of the shard.
func (e *Executor) observeOvershoot(ctx context.Context) (in safety.OvershootObservation, _ error) {
	deployments, err := objects.In[*v1alpha1.MachineDeployment](ctx, e.Reader, e.Namespace)
	sets, setsErr := objects.In[*v1alpha1.MachineSet](ctx, e.Reader, e.Namespace)
	machines, machinesErr := objects.In[*v1alpha1.Machine](ctx, e.Reader, e.Namespace)
	in.Machines, in.Complete = machines, true
	in.Deployments = slices.DeleteFunc(deployments, func(d *v1alpha1.MachineDeployment) bool { return !e.mine(d) })
	in.Sets = slices.DeleteFunc(sets, func(s *v1alpha1.MachineSet) bool { return !e.mine(s) })
	return in, errors.Join(err, setsErr, machinesErr)
}

// isSetFreeze reports whether an update freezes a set.
func isSetFreeze(u machinist.Update) bool {
	set, ok := u.Object.(*v1alpha1.MachineSet)
	return ok && u.Subresource == "" && set.Labels[v1alpha1.FreezeLabelKey] != ""
}

// refresh reads the sets to freeze, and their deployments, from the API server. The Reader may have
// machines for replicas that it does not show yet.
func (e *Executor) refresh(ctx context.Context, in safety.OvershootObservation, updates []machinist.Update) error {
	for _, u := range updates {
		frozen, ok := u.Object.(*v1alpha1.MachineSet)
		if !ok || !isSetFreeze(u) {
			continue
		}
		set, err := objects.Get[*v1alpha1.MachineSet](ctx, e.Requests, frozen.Namespace, frozen.Name)
		if err != nil {
			return err
		}
		replace(in.Sets, frozen.UID, set)
		parent := metav1.GetControllerOfNoCopy(frozen)
		if parent == nil {
			continue
		}
		d, err := objects.Get[*v1alpha1.MachineDeployment](ctx, e.Requests, frozen.Namespace, parent.Name)
		if err != nil {
			return err
		}
		replace(in.Deployments, parent.UID, d)
	}
	return nil
}

// replace replaces the object with the given UID in a list by live. If live is nil or has another
// UID, it replaces the object by nil.
func replace[T objects.Object](list []T, uid types.UID, live T) {
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

// writeFreezes makes the updates and reports their Events. The second update of an object needs the resource
// version that the first returned, and is skipped if the first failed. Other objects are still written.
func (e *Executor) writeFreezes(ctx context.Context, updates []machinist.Update) (failed error) {
	written := map[types.UID]metav1.Object{}
	for _, u := range updates {
		o, ok := u.Object.(owner)
		if !ok {
			failed = errors.Join(failed, fmt.Errorf("unknown object %T", u.Object))
			continue
		}
		uid := o.GetUID()
		if first, second := written[uid]; second {
			if first == nil {
				continue
			}
			o.SetResourceVersion(first.GetResourceVersion())
		}
		now, err := runners.Update(ctx, e.Requests, u)
		stored, _ := now.(metav1.Object)
		if written[uid] = stored; err == nil && u.Report != nil {
			e.report(o, *u.Report)
		}
		if err = objects.IgnoreNotFound(err); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", u, err))
		}
	}
	return failed
}
