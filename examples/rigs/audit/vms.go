// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

// replayCloud replays the history of the cloud, taken at the given time or with its last event,
// after the objects.
func (r *replay) replayCloud(history drivertest.History, taken time.Time) {
	vms := map[string]drivertest.VM{} // live VMs by provider ID
	for _, e := range history {
		if e.Time.After(taken) {
			taken = e.Time
		}
		if !r.ours(e.VM) {
			continue
		}
		switch e.Kind { //nolint:exhaustive // other events do not change the number of VMs
		case drivertest.VMCreated:
			r.checkGuarded(e)
			r.checkOneVM(vms, e)
			vms[e.VM.ProviderID] = e.VM
			r.figures.MostVMs = max(r.figures.MostVMs, len(vms))
			r.checkRoom(vms, e)
		case drivertest.VMDeletionBegan, drivertest.VMDeleted:
			if _, there := vms[e.VM.ProviderID]; there {
				r.checkOutlived(e.VM, e.Time)
				delete(vms, e.VM.ProviderID)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(vms)) {
		r.checkOutlived(vms[id], taken)
	}
}

// ours reports whether a VM belongs to the namespace of the log and to the controllers.
func (r *replay) ours(vm drivertest.VM) bool {
	return (r.log.Namespace == "" || vm.Namespace == r.log.Namespace) && (r.options.Foreign == nil || !r.options.Foreign(vm))
}

// checkGuarded checks that a new VM has a Machine with finalizer.
func (r *replay) checkGuarded(e drivertest.Event) {
	l := r.objects.histories[types.UID(e.VM.UID)]
	switch {
	case l == nil || l.guarded == nil:
		if r.log.blind(e.Time, r.skew()) {
			r.unproven("whether VM %s was created with a Machine with finalizer", e.VM.ProviderID)
			return
		}
		r.violate(Guarded, "VM %s of machine %s was created without a Machine with finalizer", e.VM.ProviderID, e.VM.Machine)
	case l.guarded.After(e.Time):
		r.violate(Guarded, "VM %s was created %s before its machine %s had the finalizer", e.VM.ProviderID, l.guarded.Sub(e.Time), e.VM.Machine)
	case before(l.gone, e.Time) || before(l.unguarded, e.Time):
		r.violate(Guarded, "VM %s was created after its machine %s had lost the finalizer", e.VM.ProviderID, e.VM.Machine)
	}
}

// before reports whether t is not nil and before u.
func before(t *time.Time, u time.Time) bool { return t != nil && t.Before(u) }

// checkOneVM checks that the machine of a new VM has no other VM.
func (r *replay) checkOneVM(vms map[string]drivertest.VM, e drivertest.Event) {
	for _, id := range slices.Sorted(maps.Keys(vms)) {
		if vms[id].UID == e.VM.UID {
			r.violate(OneVM, "machine %s has two VMs, %s and %s", e.VM.Machine, id, e.VM.ProviderID)
		}
	}
}

// checkRoom checks the upper bound of VMs after a new VM. A bound that held at the creation of the
// last machine is sufficient.
func (r *replay) checkRoom(vms map[string]drivertest.VM, e drivertest.Event) {
	l := r.objects.histories[types.UID(e.VM.UID)]
	if l == nil || r.objects.states[l.of] == nil {
		return
	}
	t, n, from := r.objects.states[l.of], 0, time.Time{}
	for _, vm := range vms {
		o := r.objects.histories[types.UID(vm.UID)]
		if o != nil && o.of == l.of && !o.joined.After(e.Time) && (o.deleting == nil || o.deleting.After(e.Time)) {
			n++
			from = latest(from, o.born, o.joined)
		}
	}
	if from.After(e.Time) {
		from = e.Time
	}
	if more(n, t.room.most(from.Add(-r.options.Tolerance), e.Time), r.options.Lost+r.options.ByHand) {
		r.violate(VMsOfDeployment, "%d live VMs of %s > %d replicas + %d surge, after %s", n, t.d.Name, t.d.Spec.Replicas, boundsOf(t.d).Surge, e)
	}
}

// latest returns the latest of the times.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// checkOutlived checks that the machine of a VM still had its finalizer when the deletion of the VM
// began.
func (r *replay) checkOutlived(vm drivertest.VM, ends time.Time) {
	l := r.objects.histories[types.UID(vm.UID)]
	switch {
	case l == nil:
	case before(l.gone, ends):
		r.violate(Outlived, "VM %s was deleted %s after its machine %s", vm.ProviderID, ends.Sub(*l.gone), vm.Machine)
	case before(l.unguarded, ends):
		r.violate(Outlived, "VM %s was deleted %s after the finalizer of its machine %s", vm.ProviderID, ends.Sub(*l.unguarded), vm.Machine)
	}
}
