// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

// replayCloud goes through the history of the cloud, which was taken at the
// given time or with its last event. The objects have been replayed.
func (r *replay) replayCloud(history drivertest.History, taken time.Time) {
	vms := map[string]drivertest.VM{} // by provider ID, until their deletion begins
	for _, e := range history {
		if e.Time.After(taken) {
			taken = e.Time
		}
		if !r.ours(e.VM) {
			continue
		}
		switch e.Kind { //nolint:exhaustive // the others change no number of VMs
		case drivertest.VMCreated:
			r.guarded(e)
			r.alone(vms, e)
			vms[e.VM.ProviderID] = e.VM
			r.figures.MostVMs = max(r.figures.MostVMs, len(vms))
			r.fits(vms, e)
		case drivertest.VMDeletionBegan, drivertest.VMDeleted:
			if _, there := vms[e.VM.ProviderID]; there {
				r.outlived(e.VM, e.Time)
				delete(vms, e.VM.ProviderID)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(vms)) {
		r.outlived(vms[id], taken)
	}
}

// ours says whether a VM belongs to what the log is about.
func (r *replay) ours(vm drivertest.VM) bool {
	return (r.log.Namespace == "" || vm.Namespace == r.log.Namespace) && (r.options.Foreign == nil || !r.options.Foreign(vm))
}

// guarded checks that a VM that begins has a machine with a guard.
func (r *replay) guarded(e drivertest.Event) {
	l := r.objects.lives[types.UID(e.VM.UID)]
	switch {
	case l == nil || l.guarded == nil:
		if r.log.blind(e.Time, r.skew()) {
			r.unproven("whether VM %s began with a guarded machine", e.VM.ProviderID)
			return
		}
		r.broken(Guarded, "VM %s of machine %s began without a guarded machine", e.VM.ProviderID, e.VM.Machine)
	case l.guarded.After(e.Time):
		r.broken(Guarded, "VM %s began %s before the machine %s was guarded: without a guarded machine", e.VM.ProviderID, l.guarded.Sub(e.Time), e.VM.Machine)
	case before(l.gone, e.Time) || before(l.unguarded, e.Time):
		r.broken(Guarded, "VM %s began after the machine %s had lost its guard: without a guarded machine", e.VM.ProviderID, e.VM.Machine)
	}
}

// before says whether there is a time and it is before another.
func before(t *time.Time, u time.Time) bool { return t != nil && t.Before(u) }

// alone checks that the machine of a VM that begins has no other.
func (r *replay) alone(vms map[string]drivertest.VM, e drivertest.Event) {
	for _, id := range slices.Sorted(maps.Keys(vms)) {
		if vms[id].UID == e.VM.UID {
			r.broken(OneVM, "machine %s has two VMs, %s and %s", e.VM.Machine, id, e.VM.ProviderID)
		}
	}
}

// fits checks that the deployment of a VM that begins has room for it, or had when
// the last of the machines was made: what was in order then may get its VM.
func (r *replay) fits(vms map[string]drivertest.VM, e drivertest.Event) {
	l := r.objects.lives[types.UID(e.VM.UID)]
	if l == nil || r.objects.tallies[l.of] == nil {
		return
	}
	t, n, from := r.objects.tallies[l.of], 0, time.Time{}
	for _, vm := range vms {
		o := r.objects.lives[types.UID(vm.UID)]
		if o != nil && o.of == l.of && !o.joined.After(e.Time) && (o.deleting == nil || o.deleting.After(e.Time)) {
			n++
			from = latest(from, o.born, o.joined)
		}
	}
	if from.After(e.Time) {
		from = e.Time
	}
	if more(n, t.room.most(from.Add(-r.options.Tolerance), e.Time), r.options.Lost+r.options.ByHand) {
		r.broken(VMsOfDeployment, "%d VMs of %s alive > %d replicas + %d surge, after %s", n, t.d.Name, t.d.Spec.Replicas, boundsOf(t.d).Surge, e)
	}
}

// latest returns the latest of some times.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// outlived checks that the machine of a VM was still there, and guarded, when the
// deletion of the VM began.
func (r *replay) outlived(vm drivertest.VM, ends time.Time) {
	l := r.objects.lives[types.UID(vm.UID)]
	switch {
	case l == nil:
	case before(l.gone, ends):
		r.broken(Outlived, "VM %s outlived its machine %s by %s", vm.ProviderID, vm.Machine, ends.Sub(*l.gone))
	case before(l.unguarded, ends):
		r.broken(Outlived, "VM %s outlived the guard of its machine %s by %s", vm.ProviderID, vm.Machine, ends.Sub(*l.unguarded))
	}
}
