// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

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

// verify replays the histories of the control cluster and of the cloud as one,
// and says which bound was broken:
//
//   - no deployment ever has more machines alive, or more VMs of machines that are
//     alive, than its replicas and surge;
//   - none falls under its replicas less what may be unavailable, once it has
//     been complete, unless it is being deleted, was just scaled up, or is to be
//     recreated;
//   - no machine ever has two VMs;
//   - no VM begins without a Machine that guards it, and none outlives it;
//   - the cloud holds nothing in the end.
func (w *world) verify() (figures, error) {
	r := newReplay()
	r.all(w.control.History(), w.cloud.History())
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
	vms         map[string]drivertest.VM // by provider ID, until their deletion begins
	figures     figures
	errs        []error
}

// tally is one deployment as far as the replay has come.
type tally struct {
	d        *v1alpha1.MachineDeployment
	reached  bool // it has been complete with these replicas
	replicas int32
}

func newReplay() *replay {
	return &replay{
		deployments: map[types.UID]*tally{}, owners: map[types.UID]types.UID{}, machines: map[types.UID]*v1alpha1.Machine{},
		vms: map[string]drivertest.VM{}, figures: figures{available: -1},
	}
}

// all replays two histories in the order of their times; what happened at the
// same time in both, in the cluster first.
func (r *replay) all(writes []draintest.Write, events drivertest.History) {
	for _, w := range writes {
		for len(events) > 0 && events[0].Time.Before(w.Time) {
			r.event(events[0])
			events = events[1:]
		}
		r.write(w)
	}
	for _, e := range events {
		r.event(e)
	}
}

func (r *replay) broken(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// write replays a write to the control cluster.
func (r *replay) write(w draintest.Write) {
	r.figures.writes++
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
		r.count(o, w)
	case nil:
		if m, ok := w.Before.(*v1alpha1.Machine); ok {
			delete(r.machines, m.UID)
			r.outlived(m)
			r.count(m, w)
		}
	}
}

// event replays a change of the cloud.
func (r *replay) event(e drivertest.Event) {
	switch e.Kind { //nolint:exhaustive // the others change no number of VMs
	case drivertest.VMCreated:
		r.begins(e)
	case drivertest.VMDeletionBegan, drivertest.VMDeleted:
		delete(r.vms, e.VM.ProviderID)
	}
}

// begins checks a VM that is made: its machine is there and guarded, has no
// other, and its deployment has room.
func (r *replay) begins(e drivertest.Event) {
	m := r.machines[types.UID(e.VM.UID)]
	if m == nil || !slices.Contains(m.Finalizers, v1alpha1.MCMFinalizerName) {
		r.broken("VM %s began without a guarded machine", e.VM.ProviderID)
	}
	for _, other := range r.vms {
		if other.UID == e.VM.UID {
			r.broken("machine %s has two VMs, %s and %s", e.VM.Machine, other.ProviderID, e.VM.ProviderID)
		}
	}
	r.vms[e.VM.ProviderID] = e.VM
	r.figures.vms = max(r.figures.vms, len(r.vms))
	if m == nil {
		return
	}
	t := r.deployments[r.deploymentOf(m)]
	if t == nil || !t.d.DeletionTimestamp.IsZero() {
		return
	}
	n := 0
	for _, vm := range r.vms {
		owner := r.machines[types.UID(vm.UID)]
		if owner != nil && owner.DeletionTimestamp.IsZero() && r.deploymentOf(owner) == t.d.UID {
			n++
		}
	}
	r.bounded(n, "VMs", t.d, e)
}

// outlived checks that a machine that is gone leaves no VM.
func (r *replay) outlived(m *v1alpha1.Machine) {
	for _, vm := range r.vms {
		if vm.UID == string(m.UID) {
			r.broken("VM %s outlived its machine %s", vm.ProviderID, m.Name)
		}
	}
}

// bounded checks that there are not too many of a thing.
func (r *replay) bounded(n int, what string, d *v1alpha1.MachineDeployment, after fmt.Stringer) {
	if surge := deployment.MaxSurge(d); n > int(d.Spec.Replicas)+int(surge) {
		r.broken("%d %s of %s alive > %d replicas + %d surge, after %s", n, what, d.Name, d.Spec.Replicas, surge, after)
	}
}

// count counts the machines of a deployment after one of them has changed.
func (r *replay) count(changed *v1alpha1.Machine, w draintest.Write) {
	everywhere, alive, available := 0, 0, 0
	of := r.deploymentOf(changed)
	for _, m := range r.machines {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		everywhere++
		if r.deploymentOf(m) != of {
			continue
		}
		alive++
		if machineset.Available(m) {
			available++
		}
	}
	r.figures.alive = max(r.figures.alive, everywhere)
	t := r.deployments[of]
	if t == nil || !t.d.DeletionTimestamp.IsZero() {
		return
	}
	r.bounded(alive, "machines", t.d, w)
	if !t.reached || t.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		return
	}
	if r.figures.available < 0 || available < r.figures.available {
		r.figures.available = available
	}
	if unavailable := deployment.MaxUnavailable(t.d); available < int(t.d.Spec.Replicas)-int(unavailable) {
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
