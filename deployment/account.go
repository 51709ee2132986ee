// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// An account is one set: what was seen of it, and what this pass makes of it.
type account struct {
	set      *v1alpha1.MachineSet // as observed
	next     *v1alpha1.MachineSet // a copy, to be worked on
	machines []*v1alpha1.Machine  // all of them, by name
	counts   machineset.Counts    // of the machines
	goers    []machineset.Victim  // those that go for the size it was seen to have
	stay     []*v1alpha1.Machine  // those that may be chosen beside them
	chosen   []machineset.Victim  // those of them that this pass chose
	exposed  []*v1alpha1.Machine  // those of them that may go in place of one that was not seen
	victims  []machineset.Victim  // those that go for the size it gets
	changes  []string             // what differs between set and next
	why      string               // of the size
	isNew    bool                 // the set of the present template
	reported bool                 // its status is of its present spec
	doomed   bool                 // it is being deleted
	idle     bool                 // it creates nothing, because we told it so
	minReady int32                // seconds for which machines have to be available

	spec      int64 // planned size
	replicas  int64 // machines there are, those on their way out included
	leaving   int64 // machines seen on their way out
	unseen    int64 // machines that may exist and were not seen
	available int64 // available machines that stay for the size it has, as seen
	lost      int64 // those of them that may go, by what was not seen or by what this pass chose
}

// open makes the accounts of all sets, oldest first.
func (c *pass) open() {
	by := byController(c.in.Machines)
	for _, s := range byCreation(c.in.Sets) {
		a := &account{
			set: s, next: s.DeepCopy(), machines: by[s.UID], isNew: s == c.newSet,
			reported: observed(s), doomed: s.DeletionTimestamp != nil,
			idle: machineset.ScaleUpDisabled(s) && s != c.newSet,
			spec: int64(max(0, s.Spec.Replicas)), minReady: s.Spec.MinReadySeconds,
		}
		asks := *s
		if a.isNew { // it takes over what is asked for now, and no machine may go for one that does not count then
			asks.Spec.MinReadySeconds = max(asks.Spec.MinReadySeconds, c.d.Spec.MinReadySeconds)
			a.minReady = asks.Spec.MinReadySeconds
		}
		a.counts = machineset.Count(&asks, a.machines, nil, c.now)
		a.replicas = max(int64(s.Status.Replicas), int64(a.counts.Machines))
		a.leaving = int64(a.counts.Leaving)
		a.unseen = a.replicas - int64(a.counts.Machines)
		if !a.idle {
			a.unseen = max(a.unseen, a.spec-int64(a.counts.Present))
		}
		if a.isNew && machineset.ScaleUpDisabled(s) {
			a.spec = min(a.spec, int64(a.counts.Present)) // it begins with what it has
		}
		c.noteUpdates(a)
		c.settle(a)
		c.accounts = append(c.accounts, a)
	}
}

// settle finds out who goes for the size that a set has, and who stays.
func (c *pass) settle(a *account) {
	a.stay = machineset.Eligible(a.machines, nil)
	var possible []machineset.Victim
	a.goers, possible = c.goers(a.set, a.stay, a.spec, a.unseen)
	a.victims = a.goers
	a.available = int64(a.counts.Available) - c.countUpdating(a)
	if len(a.goers) > 0 {
		going := make(map[*v1alpha1.Machine]bool, len(a.goers))
		for _, v := range a.goers {
			going[v.Machine] = true
			if c.available(a, v.Machine) {
				a.available--
			}
		}
		a.stay = slices.DeleteFunc(a.stay, func(m *v1alpha1.Machine) bool { return going[m] })
	}
	for _, v := range possible { // they stay as far as anybody knows, and nobody counts on them
		if c.available(a, v.Machine) {
			a.lost++
		}
	}
	if a.unseen > 0 {
		a.exposed = c.beforeFresh(a.stay)
	}
	c.look(nextAvailable(a, c.now))
}

// byController sorts machines out by the UID of their controller, and then by
// name, each once; of two views of one machine that which is leaving.
func byController(machines []*v1alpha1.Machine) map[types.UID][]*v1alpha1.Machine {
	by := map[types.UID][]*v1alpha1.Machine{}
	for _, m := range machines {
		if m == nil {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
			by[owner.UID] = append(by[owner.UID], m)
		}
	}
	for uid, list := range by {
		by[uid] = machineset.Distinct(list)
	}
	return by
}

// edited says whether the set is to be written. Whoever changes the copy says so
// in the changes.
func (a *account) edited() bool {
	return len(a.changes) > 0 && !equality.Semantic.DeepEqual(a.next, a.set)
}

// account returns that of a set, nil if it has none.
func (c *pass) account(s *v1alpha1.MachineSet) *account {
	for _, a := range c.accounts {
		if s != nil && a.set == s {
			return a
		}
	}
	return nil
}
