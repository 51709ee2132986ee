// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// account is one set: its observed state, and its new state.
type account struct {
	set      *v1alpha1.MachineSet // as observed
	next     *v1alpha1.MachineSet // the new state
	now      time.Time
	machines []*v1alpha1.Machine // all of them, by name
	counts   members.Counts      // of the machines
	updating map[*v1alpha1.Machine]bool
	minReady time.Duration // from minReadySeconds

	isNew           bool // the set of the present template
	reported        bool // its status is of its present spec
	deleting        bool // it has a deletion timestamp
	scaleUpDisabled bool // its label keeps it from creating machines

	outgoing []machineset.Victim // machines that the set deletes for its observed size
	stay     []*v1alpha1.Machine // other machines that may be chosen
	exposed  []*v1alpha1.Machine // those of stay that the set may delete instead of an unobserved one
	chosen   []machineset.Victim // machines that this decision chose
	victims  []machineset.Victim // machines that the set deletes for the planned size
	changes  []string            // what differs between set and next
	why      string              // why it gets the planned size, for people

	spec      int64 // planned size
	replicas  int64 // machines, including terminating ones
	leaving   int64 // observed terminating machines
	unseen    int64 // machines that may exist and were not observed
	available int64 // observed available machines that stay for the observed size
	lost      int64 // those of available that were chosen, or may be deleted instead of unobserved ones
}

// openAccounts returns the accounts of the sets, oldest first.
func openAccounts(in Observation, d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, order machineset.Order, now time.Time) []*account {
	by := byController(in.Machines)
	var accounts []*account
	for _, s := range in.Sets {
		a := &account{
			set: s, next: s.DeepCopy(), now: now, machines: by[s.UID], isNew: s == newSet,
			reported: observed(s), deleting: s.DeletionTimestamp != nil,
			scaleUpDisabled: members.ScaleUpDisabled(s) && s != newSet,
			spec:            int64(max(0, s.Spec.Replicas)),
		}
		asks := *s
		if a.isNew { // the same decision writes it; no machine may be deleted for one that does not count then
			asks.Spec.MinReadySeconds = max(asks.Spec.MinReadySeconds, d.Spec.MinReadySeconds)
		}
		a.minReady = time.Duration(asks.Spec.MinReadySeconds) * time.Second
		a.counts = members.Count(&asks, a.machines, nil, now)
		a.replicas = max(int64(s.Status.Replicas), int64(a.counts.Machines))
		a.leaving = int64(a.counts.Leaving)
		a.unseen = a.replicas - int64(a.counts.Machines)
		if !a.scaleUpDisabled {
			a.unseen = max(a.unseen, a.spec-int64(a.counts.Present))
		}
		if a.isNew && members.ScaleUpDisabled(s) {
			a.spec = min(a.spec, int64(a.counts.Present)) // it starts with its present machines
		}
		if updatesInPlace(d) {
			a.updating = updatingMachines(in, a.machines)
		}
		a.predict(order)
		accounts = append(accounts, a)
	}
	return accounts
}

// updatesInPlace reports whether the strategy of a deployment is the in-place update.
func updatesInPlace(d *v1alpha1.MachineDeployment) bool {
	return d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
}

// byController returns the machines by the UID of their controller, sorted by name, each once. If a
// machine is observed twice, the terminating version counts.
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
		by[uid] = members.Distinct(list)
	}
	return by
}

// predict sets the machines that the set deletes for its observed size, and those that stay.
func (a *account) predict(order machineset.Order) {
	a.stay = members.Eligible(a.machines, nil)
	var possible []machineset.Victim
	a.outgoing, possible = outgoing(a.set, a.stay, a.spec, a.unseen, order, a.now)
	a.victims = a.outgoing
	a.available = int64(a.counts.Available)
	for m := range a.updating { // the counts contain them
		if !members.Leaving(m) && members.AvailableFor(m, a.minReady, a.now) {
			a.available--
		}
	}
	a.remove(a.outgoing)
	a.available -= a.availableOf(a.outgoing)
	a.lost += a.availableOf(possible) // they may be deleted
	if a.unseen > 0 {
		a.exposed = beforeNew(a.stay, order, a.now)
	}
}

// outgoing returns the eligible machines that a set deletes to keep a number of machines, and those
// that it may delete in addition because of unobserved machines. The latter come before a new
// machine in the order. The set must select machines as [members.Choose] does, with the same
// order.
func outgoing(s *v1alpha1.MachineSet, eligible []*v1alpha1.Machine, keep, unseen int64, order machineset.Order, now time.Time) (certain, possible []machineset.Victim) {
	certain = members.Choose(s, eligible, int(keep), order)
	if unseen == 0 || int64(len(eligible))+unseen <= keep {
		return certain, nil
	}
	fresh := newMachine(now)
	for _, v := range members.Choose(s, eligible, int(max(0, keep-unseen)), order)[len(certain):] {
		if v.By != members.ByPlan && !deletedBefore(order, v.Machine, fresh) {
			break
		}
		possible = append(possible, v)
	}
	return certain, possible
}

// beforeNew returns the machines that a set may delete instead of a new one, in order.
func beforeNew(machines []*v1alpha1.Machine, order machineset.Order, now time.Time) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	fresh := newMachine(now)
	for _, m := range machines {
		if deletedBefore(order, m, fresh) {
			out = append(out, m)
		}
	}
	for i, v := range order.First(out, len(out)) {
		out[i] = v.Machine
	}
	return out
}

// newMachine returns a machine as it is after its creation.
func newMachine(now time.Time) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.CreationTimestamp = metav1.NewTime(now)
	m.Status.CurrentStatus.Phase = v1alpha1.MachinePending
	return m
}

func deletedBefore(order machineset.Order, a, b *v1alpha1.Machine) bool {
	n, _ := order.Compare(a, b)
	return n < 0
}

// isAvailable reports whether a machine counts as available: it is not terminating, its in-place
// update has not begun, and it has been available for minReadySeconds.
func (a *account) isAvailable(m *v1alpha1.Machine) bool {
	return !members.Leaving(m) && members.AvailableFor(m, a.minReady, a.now) && !a.updating[m]
}

// differs reports whether the set has to be written. Each edit of next adds to the changes.
func (a *account) differs() bool {
	return len(a.changes) > 0 && !equality.Semantic.DeepEqual(a.next, a.set)
}

// availableOf returns how many of the victims count as available.
func (a *account) availableOf(victims []machineset.Victim) int64 {
	return count(victims, func(v machineset.Victim) bool { return a.isAvailable(v.Machine) })
}

// remove removes victims from the machines that stay.
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

// most returns the maximum number of machines of the set. Its size is in addition to the
// terminating machines, because a set replaces a named machine before that is gone. A set that
// creates nothing, or that has observed its own deletion, has no more machines than now.
func (a *account) most() int64 {
	if a.scaleUpDisabled || a.deleting && a.reported {
		return a.replicas
	}
	return max(a.spec+a.leaving+int64(len(a.outgoing)), a.replicas)
}

// guaranteed returns how many machines of the set stay available after all known deletions. The
// observed or the reported number counts, whichever is smaller. It is 0 for a set that has not
// reported on its present spec, and for one that is being deleted.
func (a *account) guaranteed() int64 {
	if !a.reported || a.deleting {
		return 0
	}
	going := int64(a.counts.Available) - a.available
	return max(0, min(a.available, int64(a.set.Status.AvailableReplicas)-going)-a.lost)
}

// settled reports whether the set has as many machines as replicas, and has reported on its spec.
func (a *account) settled() bool {
	return a.reported && !a.deleting && a.spec == a.replicas
}

// seesAll reports whether a set has reported on its present spec, and reports as many machines as
// were observed.
func (a *account) seesAll() bool {
	return a.reported && int(a.set.Status.Replicas) == a.counts.Machines
}

// ledger is the accounts of all sets, with the bounds of their deployment.
type ledger struct {
	Bounds
	accounts []*account         // oldest first
	named    map[types.UID]bool // machines that a user or an autoscaler named for deletion
}

// of returns the account of a set, or nil.
func (l *ledger) of(s *v1alpha1.MachineSet) *account {
	for _, a := range l.accounts {
		if s != nil && a.set == s {
			return a
		}
	}
	return nil
}

// count returns the number of elements for which is returns true.
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

// planned returns the sum of the planned sizes.
func (l *ledger) planned() int64 { return l.sum(func(a *account) int64 { return a.spec }) }

// total returns the maximum number of machines of all sets.
func (l *ledger) total() int64 { return l.sum((*account).most) }

// available returns how many machines stay available for certain.
func (l *ledger) available() int64 { return l.sum((*account).guaranteed) }

// mayLose returns how many available machines may be deleted. It is negative if too few are
// available.
func (l *ledger) mayLose() int64 { return l.available() - l.Least() }

// mayGrow returns by how many machines the sets may grow. It is 0 until all sets have reported,
// because a set may have more machines than were observed.
func (l *ledger) mayGrow() int64 {
	if l.unreported() != nil {
		return 0
	}
	return max(0, l.Most()-l.total())
}

// unreported returns the first account whose set has not reported on its spec, or nil.
func (l *ledger) unreported() *account {
	for _, a := range l.accounts {
		if !a.reported {
			return a
		}
	}
	return nil
}

// allSettled reports whether all sets are settled.
func (l *ledger) allSettled() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.settled() })
}

// atRest reports whether no set has anything to do.
func (l *ledger) atRest() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.reported || a.spec != a.replicas })
}

// moving reports whether machines that moved to another set are not acknowledged.
func (l *ledger) moving() bool {
	return slices.ContainsFunc(l.accounts, func(a *account) bool { return a.counts.Moving > 0 })
}

// oldActive returns the accounts of the old sets with a planned size above 0 and without a deletion
// timestamp.
func (l *ledger) oldActive() []*account {
	var out []*account
	for _, a := range l.accounts {
		if !a.isNew && !a.deleting && a.spec > 0 {
			out = append(out, a)
		}
	}
	return out
}

// mayShrink returns by how many machines the old sets may shrink, if all others are available.
func (l *ledger) mayShrink() int64 {
	missing := l.sum(func(a *account) int64 {
		if a.isNew {
			return max(0, a.spec-a.guaranteed())
		}
		return 0
	})
	return l.planned() - l.Least() - missing
}
