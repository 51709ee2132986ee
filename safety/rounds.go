// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// Rounds remember when the VMs of each class were listed, and the deleted VMs whose Nodes are deleted
// too. If they are lost, all classes are listed again, and a Node without VM is reported instead of
// deleted. The zero value is empty. Rounds are not safe for several goroutines.
type Rounds struct {
	listed map[types.NamespacedName]time.Time // the last listing of each class
	woken  map[types.NamespacedName]time.Time // listed before the next round
	next   time.Time                          // of all classes; zero means that there is none
	gone   map[string]goneVM                  // by provider ID
	failed map[string]DeleteVM                // without a successful response, by provider ID
	nodes  time.Time                          // when Nodes are deleted again
}

// goneVM is a deleted VM, and until when its Nodes are deleted.
type goneVM struct {
	DeleteVM
	until time.Time
}

const (
	// wakePause is the least time between two listings of a class because of changes.
	wakePause = time.Minute
	// goneNodesFor is how long Nodes of a deleted VM are deleted, because its kubelet may join late. A
	// Node that joins later is reported as a Node without VM and machine.
	goneNodesFor = 10 * time.Minute
	// goneNodesPause is the time between two of these deletions.
	goneNodesPause = 30 * time.Second
)

// Wake makes a class due before the next round, because the VMs of its machines have changed. It returns
// when, which is at least a minute after its last listing.
func (r *Rounds) Wake(class types.NamespacedName, now time.Time) time.Time {
	at := now
	if listed, ok := r.listed[class]; ok && listed.Add(wakePause).After(now) {
		at = listed.Add(wakePause)
	}
	if before, ok := r.woken[class]; !ok || at.Before(before) {
		r.woken = put(r.woken, class, at)
	}
	return at
}

// Due returns those of all classes that have to be listed now: those that were never listed, those that were
// woken, and in a new round all. It forgets other classes.
func (r *Rounds) Due(classes []types.NamespacedName, now time.Time) (due []types.NamespacedName) {
	others := func(class types.NamespacedName, _ time.Time) bool { return !slices.Contains(classes, class) }
	maps.DeleteFunc(r.listed, others)
	maps.DeleteFunc(r.woken, others)
	round := !r.next.IsZero() && !now.Before(r.next)
	for _, class := range classes {
		_, known := r.listed[class]
		if at, woken := r.woken[class]; round || !known || woken && !now.Before(at) {
			due = append(due, class)
		}
	}
	return due
}

// Begin records that a class is being listed.
func (r *Rounds) Begin(class types.NamespacedName, now time.Time) {
	r.listed = put(r.listed, class, now)
	delete(r.woken, class)
}

// Miss records that a class could not be listed, and remains due.
func (r *Rounds) Miss(class types.NamespacedName) { delete(r.listed, class) }

// End records a decision about listings: it begins the next round at its NextCheck. VMs whose deletion has
// failed, and which are no longer listed, count as deleted.
func (r *Rounds) End(listings []Listing, d Decision[machinist.Action], now time.Time) {
	if at := d.NextCheck; !r.next.After(now) || !at.IsZero() && at.Before(r.next) {
		r.next = at
	}
	for id, a := range r.failed {
		if slices.ContainsFunc(listings, func(l Listing) bool { return lacks(l, a) }) {
			delete(r.failed, id)
			r.Deleted(a, nil, now)
		}
	}
}

// lacks reports whether a complete listing of the class of a deleted VM does not contain it.
func lacks(l Listing, a DeleteVM) bool {
	return l.Class == types.NamespacedName{Namespace: a.Namespace, Name: a.Class} && l.VMs.Complete &&
		!slices.ContainsFunc(l.VMs.Items, func(vm VM) bool { return vm.ProviderID == a.ProviderID })
}

// Deleted records the deletion of a VM, and the error of the driver or nil.
func (r *Rounds) Deleted(a DeleteVM, err error, now time.Time) {
	if err != nil {
		r.failed = put(r.failed, a.ProviderID, a)
		return
	}
	r.gone, r.nodes = put(r.gone, a.ProviderID, goneVM{a, now.Add(goneNodesFor)}), now
}

// NodesDue returns the deleted VMs whose Nodes have to be deleted now.
func (r *Rounds) NodesDue(now time.Time) (vms []DeleteVM) {
	if r.nodes.IsZero() || now.Before(r.nodes) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(r.gone)) {
		vm := r.gone[id]
		if vms = append(vms, vm.DeleteVM); now.After(vm.until) {
			delete(r.gone, id)
		}
	}
	if r.nodes = now.Add(goneNodesPause); len(r.gone) == 0 {
		r.nodes = time.Time{}
	}
	return vms
}

// Next returns when something is due, or zero if nothing will be.
func (r *Rounds) Next() time.Time {
	at := machinist.Earliest(r.next, r.nodes)
	for _, woken := range r.woken {
		at = machinist.Earliest(at, woken)
	}
	return at
}

// put sets a value in a map, which may be nil, and returns the map.
func put[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}
