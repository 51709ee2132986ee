// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// account is one set: what was observed of it, and what the decision makes of it.
type account struct {
	set      *v1alpha1.MachineSet // as observed
	next     *v1alpha1.MachineSet // the edited copy
	now      time.Time
	machines []*v1alpha1.Machine // all of them, by name
	counts   machineset.Counts   // of the machines
	updating map[*v1alpha1.Machine]bool
	minReady time.Duration // for how long machines must be available before they count

	isNew           bool // the set of the present template
	reported        bool // its status is of its present spec
	deleting        bool // it is being deleted
	scaleUpDisabled bool // it creates nothing, because its label says so

	outgoing []machineset.Victim // machines that the set deletes for its observed size
	stay     []*v1alpha1.Machine // machines that may be chosen beside them, and were not
	exposed  []*v1alpha1.Machine // those of stay that may go in place of one that was not seen
	chosen   []machineset.Victim // machines that this decision chose
	victims  []machineset.Victim // machines that go for the planned size
	changes  []string            // what differs between set and next
	why      string              // the reason of the planned size, for people

	spec      int64 // planned size
	replicas  int64 // machines there are, those that leave included
	leaving   int64 // machines seen that leave
	unseen    int64 // machines that may exist and were not seen
	available int64 // available machines that stay for the observed size, as seen
	lost      int64 // those of them that may go for machines not seen, or that were chosen
}

// openAccounts returns the accounts of the sets, oldest first.
func openAccounts(in Observation, d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, order machineset.Order, now time.Time) []*account {
	by := byController(in.Machines)
	var accounts []*account
	for _, s := range in.Sets {
		a := &account{
			set: s, next: s.DeepCopy(), now: now, machines: by[s.UID], isNew: s == newSet,
			reported: observed(s), deleting: s.DeletionTimestamp != nil,
			scaleUpDisabled: machineset.ScaleUpDisabled(s) && s != newSet,
			spec:            int64(max(0, s.Spec.Replicas)),
		}
		asks := *s
		if a.isNew { // it takes this over in the same decision, and no machine may go for one that does not count then
			asks.Spec.MinReadySeconds = max(asks.Spec.MinReadySeconds, d.Spec.MinReadySeconds)
		}
		a.minReady = time.Duration(asks.Spec.MinReadySeconds) * time.Second
		a.counts = machineset.Count(&asks, a.machines, nil, now)
		a.replicas = max(int64(s.Status.Replicas), int64(a.counts.Machines))
		a.leaving = int64(a.counts.Leaving)
		a.unseen = a.replicas - int64(a.counts.Machines)
		if !a.scaleUpDisabled {
			a.unseen = max(a.unseen, a.spec-int64(a.counts.Present))
		}
		if a.isNew && machineset.ScaleUpDisabled(s) {
			a.spec = min(a.spec, int64(a.counts.Present)) // it begins with what it has
		}
		if updatesInPlace(d) {
			a.updating = updatingMachines(in, a.machines)
		}
		a.predict(order)
		accounts = append(accounts, a)
	}
	return accounts
}

// updatesInPlace reports whether the strategy of a deployment is an update in place.
func updatesInPlace(d *v1alpha1.MachineDeployment) bool {
	return d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
}

// byController returns the machines by the UID of their controller, sorted by name, each
// once. Of two views of one machine the leaving one counts.
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

// predict finds out which machines go for the size that the set has, and which stay.
func (a *account) predict(order machineset.Order) {
	a.stay = machineset.Eligible(a.machines, nil)
	var possible []machineset.Victim
	a.outgoing, possible = outgoing(a.set, a.stay, a.spec, a.unseen, order, a.now)
	a.victims = a.outgoing
	a.available = int64(a.counts.Available)
	for m := range a.updating { // these are counted as available, and are not
		if !machineset.Leaving(m) && machineset.AvailableFor(m, a.minReady, a.now) {
			a.available--
		}
	}
	a.remove(a.outgoing)
	a.available -= a.availableOf(a.outgoing)
	a.lost += a.availableOf(possible) // they stay as far as is known, and nothing counts on them
	if a.unseen > 0 {
		a.exposed = beforeFresh(a.stay, order, a.now)
	}
}

// outgoing returns the eligible machines that a set deletes to keep that many, and those
// beside them that it may delete because of machines that were not seen: they go before a
// machine which has just been created. It relies on the set choosing as
// [machineset.Choose] does, by the same order.
func outgoing(s *v1alpha1.MachineSet, eligible []*v1alpha1.Machine, keep, unseen int64, order machineset.Order, now time.Time) (certain, possible []machineset.Victim) {
	certain = machineset.Choose(s, eligible, int(keep), order)
	if unseen == 0 || int64(len(eligible))+unseen <= keep {
		return certain, nil
	}
	fresh := freshMachine(now)
	for _, v := range machineset.Choose(s, eligible, int(max(0, keep-unseen)), order)[len(certain):] {
		if v.By != machineset.ByPlan && !goesBefore(order, v.Machine, fresh) {
			break
		}
		possible = append(possible, v)
	}
	return certain, possible
}

// beforeFresh returns the machines that a set may delete in place of one that it has just
// created, in that order.
func beforeFresh(machines []*v1alpha1.Machine, order machineset.Order, now time.Time) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	fresh := freshMachine(now)
	for _, m := range machines {
		if goesBefore(order, m, fresh) {
			out = append(out, m)
		}
	}
	for i, v := range order.First(out, len(out)) {
		out[i] = v.Machine
	}
	return out
}

// freshMachine returns a machine as a set has just created it.
func freshMachine(now time.Time) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.CreationTimestamp = metav1.NewTime(now)
	m.Status.CurrentStatus.Phase = v1alpha1.MachinePending
	return m
}

func goesBefore(order machineset.Order, a, b *v1alpha1.Machine) bool {
	n, _ := order.Compare(a, b)
	return n < 0
}

// isAvailable reports whether a machine counts as available and stays: it is not leaving,
// its update in place has not begun, and it has been available for as long as its set
// asks.
func (a *account) isAvailable(m *v1alpha1.Machine) bool {
	return !machineset.Leaving(m) && machineset.AvailableFor(m, a.minReady, a.now) && !a.updating[m]
}

// differs reports whether the set is to be written. Each edit of next adds to the changes.
func (a *account) differs() bool {
	return len(a.changes) > 0 && !equality.Semantic.DeepEqual(a.next, a.set)
}

// availableOf returns how many of the victims count as available.
func (a *account) availableOf(victims []machineset.Victim) int64 {
	return count(victims, func(v machineset.Victim) bool { return a.isAvailable(v.Machine) })
}

// remove takes victims from the machines that stay.
func (a *account) remove(victims []machineset.Victim) {
	if len(victims) == 0 {
		return
	}
	gone := make(map[*v1alpha1.Machine]bool, len(victims))
	for _, v := range victims {
		gone[v.Machine] = true
	}
	a.stay = slices.DeleteFunc(a.stay, func(m *v1alpha1.Machine) bool { return gone[m] })
}

// most returns how many machines may exist for the set: its size comes on top of the
// machines that leave, or are about to, as a set replaces a named machine without waiting
// until it is gone. A set that creates nothing has what it has, and so has one that has
// seen that it is being deleted.
func (a *account) most() int64 {
	if a.scaleUpDisabled || a.deleting && a.reported {
		return a.replicas
	}
	return max(a.spec+a.leaving+int64(len(a.outgoing)), a.replicas)
}

// guaranteed returns how many machines of the set are still available when all have gone
// that this decision knows of. Of what was seen and what was reported the smaller number
// counts. A set that has not reported on its spec may have been told anything in between,
// and one that is being deleted loses all: nothing is guaranteed of them.
func (a *account) guaranteed() int64 {
	if !a.reported || a.deleting {
		return 0
	}
	going := int64(a.counts.Available) - a.available
	return max(0, min(a.available, int64(a.set.Status.AvailableReplicas)-going)-a.lost)
}

// settled reports whether the set has done what it was told.
func (a *account) settled() bool {
	return a.reported && !a.deleting && a.spec == a.replicas
}

// seesAll reports whether a set has reported on its present spec, and sees as many
// machines as were observed. It has then seen every machine that came or left.
func (a *account) seesAll() bool {
	return a.reported && int(a.set.Status.Replicas) == a.counts.Machines
}

// A ledger holds the accounts of all sets against the bounds of their deployment.
type ledger struct {
	Bounds
	accounts []*account         // oldest first
	named    map[types.UID]bool // machines that a user or an autoscaler named to go
}

// of returns the account of a set, nil if it has none.
func (l *ledger) of(s *v1alpha1.MachineSet) *account {
	for _, a := range l.accounts {
		if s != nil && a.set == s {
			return a
		}
	}
	return nil
}

// count returns how many elements of a list are of a kind.
func count[T any](list []T, is func(T) bool) int64 {
	var n int64
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

func (l *ledger) sum(f func(*account) int64) int64 {
	var n int64
	for _, a := range l.accounts {
		n += f(a)
	}
	return n
}

// asked returns the sum of the planned sizes.
func (l *ledger) asked() int64 { return l.sum(func(a *account) int64 { return a.spec }) }

// total returns how many machines may exist.
func (l *ledger) total() int64 { return l.sum((*account).most) }

// available returns how many machines are guaranteed to be available.
func (l *ledger) available() int64 { return l.sum((*account).guaranteed) }

// slack returns how many available machines may still go; below 0 if there are too few
// already.
func (l *ledger) slack() int64 { return l.available() - l.Least() }

// room returns by how many machines the sets may grow: none before all have reported, as
// a set that has not may have more machines than were seen.
func (l *ledger) room() int64 {
	if l.silent() != nil {
		return 0
	}
	return max(0, l.Most()-l.total())
}

// silent returns the first account whose set has not reported on its spec, nil if all
// have.
func (l *ledger) silent() *account {
	for _, a := range l.accounts {
		if !a.reported {
			return a
		}
	}
	return nil
}

// allSettled reports whether all sets have done what they were told.
func (l *ledger) allSettled() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.settled() })
}

// atRest reports whether no set has anything to do.
func (l *ledger) atRest() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.reported || a.spec != a.replicas })
}

// moving reports whether machines have moved to a set in place and are not acknowledged.
func (l *ledger) moving() bool {
	return slices.ContainsFunc(l.accounts, func(a *account) bool { return a.counts.Moving > 0 })
}

// oldActive returns the accounts of the old sets with a planned size above 0 that are not
// being deleted.
func (l *ledger) oldActive() []*account {
	var out []*account
	for _, a := range l.accounts {
		if !a.isNew && !a.deleting && a.spec > 0 {
			out = append(out, a)
		}
	}
	return out
}

// budget returns by how many machines the old sets may shrink before the rest, all
// available, would be too few.
func (l *ledger) budget() int64 {
	missing := l.sum(func(a *account) int64 {
		if a.isNew {
			return max(0, a.spec-a.guaranteed())
		}
		return 0
	})
	return l.asked() - l.Least() - missing
}
