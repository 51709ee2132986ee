// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// figures are what the histories show.
type figures struct {
	alive     int // most machines at a time that were not being deleted
	available int // fewest available of a deployment that had been complete; -1 means that none had
	vms       int // most VMs at a time that were not being deleted
	writes    int // writes to the control cluster
}

// verify replays the histories of the clusters and of the cloud, and says which
// bound was broken:
//
//   - no deployment ever has more machines alive than its replicas and surge;
//   - none falls under its replicas less what may be unavailable, once it has
//     been complete, unless it is being deleted or was just scaled up;
//   - no machine ever has two VMs;
//   - no VM begins without a Machine that guards it, and none outlives it.
func (w *world) verify() (figures, error) {
	r := replay{figures: figures{available: -1}, deployments: map[types.UID]*tally{}, owners: map[types.UID]types.UID{}, machines: map[types.UID]*v1alpha1.Machine{}}
	for _, write := range w.control.History() {
		r.figures.writes++
		r.write(write)
	}
	history := w.cloud.History()
	if most, name := history.MaxVMsOfOneMachine(); most > 1 {
		r.broken("machine %s had %d VMs at a time", name, most)
	}
	r.figures.vms = history.MaxVMs(nil)
	r.guarded(w.control.History(), history)
	if s := w.cloud.Snapshot(); !s.Empty() {
		r.broken("the cloud still holds:\n%s", s)
	}
	return r.figures, errors.Join(r.errs...)
}

// replay goes through a history.
type replay struct {
	deployments map[types.UID]*tally
	owners      map[types.UID]types.UID // set -> deployment
	machines    map[types.UID]*v1alpha1.Machine
	figures     figures
	errs        []error
}

// tally is one deployment as far as the replay has come.
type tally struct {
	d        *v1alpha1.MachineDeployment
	reached  bool // it has been complete with these replicas
	replicas int32
}

func (r *replay) broken(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *replay) write(w draintest.Write) {
	switch o := w.After.(type) {
	case *v1alpha1.MachineDeployment:
		t := r.deployments[o.UID]
		if t == nil {
			t = &tally{}
			r.deployments[o.UID] = t
		}
		t.reached = t.reached && t.replicas == o.Spec.Replicas || deployment.Complete(o, o.Status)
		t.d, t.replicas = o, o.Spec.Replicas
	case *v1alpha1.MachineSet:
		for _, ref := range o.OwnerReferences {
			r.owners[o.UID] = ref.UID
		}
	case *v1alpha1.Machine:
		r.machines[o.UID] = o
		r.check(o, w)
	case nil:
		if m, ok := w.Before.(*v1alpha1.Machine); ok {
			delete(r.machines, m.UID)
			r.check(m, w)
		}
	}
}

// check counts the machines of a deployment after one of them has changed.
func (r *replay) check(changed *v1alpha1.Machine, w draintest.Write) {
	all := 0
	for _, m := range r.machines {
		if m.DeletionTimestamp.IsZero() {
			all++
		}
	}
	r.figures.alive = max(r.figures.alive, all)
	t := r.deployments[r.deploymentOf(changed)]
	if t == nil || !t.d.DeletionTimestamp.IsZero() {
		return
	}
	alive, available := 0, 0
	for _, m := range r.machines {
		if r.deploymentOf(m) != t.d.UID || !m.DeletionTimestamp.IsZero() {
			continue
		}
		alive++
		if machineset.Available(m) {
			available++
		}
	}
	surge, unavailable := int(deployment.MaxSurge(t.d)), int(deployment.MaxUnavailable(t.d))
	if most := int(t.d.Spec.Replicas) + surge; alive > most {
		r.broken("%d machines of %s alive > %d replicas + %d surge, after %s", alive, t.d.Name, t.d.Spec.Replicas, surge, w)
	}
	if !t.reached {
		return
	}
	if r.figures.available < 0 || available < r.figures.available {
		r.figures.available = available
	}
	if available < int(t.d.Spec.Replicas)-unavailable {
		r.broken("%d machines of %s available < %d replicas - %d unavailable, after %s", available, t.d.Name, t.d.Spec.Replicas, unavailable, w)
	}
}

func (r *replay) deploymentOf(m *v1alpha1.Machine) types.UID {
	for _, ref := range m.OwnerReferences {
		if uid, ok := r.owners[ref.UID]; ok {
			return uid
		}
	}
	return ""
}

// guarded checks that every VM began after its Machine was guarded by the
// finalizer, and ended before the Machine did.
func (r *replay) guarded(writes []draintest.Write, history drivertest.History) {
	type life struct{ from, to draintest.Write }
	lives := map[types.UID]*life{}
	for _, w := range writes {
		m, ok := w.After.(*v1alpha1.Machine)
		if !ok {
			if m, ok = w.Before.(*v1alpha1.Machine); ok && w.After == nil && lives[m.UID] != nil {
				lives[m.UID].to = w
			}
			continue
		}
		if lives[m.UID] == nil && len(m.Finalizers) > 0 {
			lives[m.UID] = &life{from: w}
		}
	}
	for _, e := range history {
		l := lives[types.UID(e.VM.UID)]
		switch {
		case e.Kind == drivertest.VMCreated && (l == nil || l.from.Time.After(e.Time)):
			r.broken("VM %s began without a guarded machine", e.VM.ProviderID)
		case e.Kind == drivertest.VMDeletionBegan && l != nil && !l.to.Time.IsZero() && l.to.Time.Before(e.Time):
			r.broken("VM %s outlived its machine %s", e.VM.ProviderID, e.VM.Machine)
		}
	}
}
