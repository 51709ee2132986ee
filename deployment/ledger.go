// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A ledger keeps what the sets were seen to have and what this decision makes
// of it. All bounds are kept here: how many machines there may be at most, and
// how many are available at least, whatever the sets do with what they are told.
type ledger struct {
	limits
	accounts []*account
}

type account struct {
	set       *v1alpha1.MachineSet
	spec      int64 // planned size
	replicas  int64 // machines reported, those on their way out included
	leaving   int64 // machines seen on their way out
	available int64
	isNew     bool
	reported  bool // the status is of the present spec
	doomed    bool
}

func (c *pass) ledger() *ledger {
	l := &ledger{limits: limitsOf(c.d)}
	leaving := leavingMachines(c.in.Machines)
	for _, s := range append(slices.Clip(c.old), c.newSet) {
		if s == nil {
			continue
		}
		l.accounts = append(l.accounts, &account{
			set:       s,
			spec:      int64(max(0, s.Spec.Replicas)),
			replicas:  int64(max(0, s.Status.Replicas)),
			available: int64(max(0, s.Status.AvailableReplicas)),
			leaving:   leaving[s.UID],
			isNew:     s == c.newSet,
			reported:  observed(s),
			doomed:    s.DeletionTimestamp != nil,
		})
	}
	return l
}

// of returns the account of a set.
func (l *ledger) of(s *v1alpha1.MachineSet) *account {
	for _, a := range l.accounts {
		if a.set == s {
			return a
		}
	}
	return nil
}

// leavingMachines counts the machines on their way out by the UID of their set.
func leavingMachines(machines []*v1alpha1.Machine) map[types.UID]int64 {
	out := map[types.UID]int64{}
	for _, m := range machines {
		if m == nil || (m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating) {
			continue
		}
		if owner := metav1.GetControllerOf(m); owner != nil {
			out[owner.UID]++
		}
	}
	return out
}

// machines returns how many machines may exist for the set: what it was asked
// for comes on top of what is on its way out.
func (a *account) machines() int64 { return max(a.spec+a.leaving, a.replicas) }

// sure returns how many machines of the set are still available when it has
// been cut to the given size and each machine that it has to delete for that
// was an available one. Those it was asked for and did not report may exist by
// now, so that they are no reason to delete fewer. A set whose status is of an
// earlier spec may have been told anything in between, and one that is being
// deleted loses all: nothing is sure of them.
func (a *account) sure(size int64) int64 {
	if !a.reported || a.doomed {
		return 0
	}
	return min(size, max(0, a.available-max(0, a.exist()-size)))
}

// exist returns how many machines the set may have that it would have to delete.
func (a *account) exist() int64 { return max(a.replicas, int64(a.set.Spec.Replicas)) }

// settled says that the set has done what it was told.
func (a *account) settled() bool {
	return a.reported && !a.doomed && a.spec == a.replicas
}

func (l *ledger) sum(f func(*account) int64) int64 {
	var n int64
	for _, a := range l.accounts {
		n += f(a)
	}
	return n
}

func (l *ledger) asked() int64 { return l.sum(func(a *account) int64 { return a.spec }) }

func (l *ledger) total() int64 { return l.sum((*account).machines) }

func (l *ledger) sureNow() int64 { return l.sum(func(a *account) int64 { return a.sure(a.spec) }) }

// room returns by how much a set may grow; and the set that has to report first
// or to lose machines first, if there is one. A set that has not reported may
// have more machines than can be seen. And a set that has more than it was asked
// for must not grow, because it would be asked for new ones on top of those that
// go, and nobody could tell any more how many those are.
func (l *ledger) room(of *account) (room int64, silent, surplus *v1alpha1.MachineSet) {
	for _, a := range l.accounts {
		if !a.reported {
			return 0, a.set, nil
		}
	}
	if of != nil && of.replicas > of.spec+of.leaving {
		return 0, nil, of.set
	}
	return max(0, l.desired+l.surge-l.total()), nil, nil
}

// reducible returns how much of a cut the availability allows: after it the
// machines that are sure to be available are still enough. If they are too few
// already, only a set that was seen to have none available may shrink.
func (l *ledger) reducible(a *account, want int64) int64 {
	want = max(0, min(want, a.spec))
	slack := l.sureNow() - l.least()
	if slack < 0 {
		if a.available == 0 && l.allReported() {
			return want
		}
		return 0
	}
	before := a.sure(a.spec)
	if before-a.sure(a.spec-want) <= slack {
		return want
	}
	floor := before - slack // more than zero, as the loss exceeds the slack
	bySize := a.spec - floor
	byDeletion := a.spec - a.exist() + a.available - floor
	return min(max(0, min(bySize, byDeletion)), want)
}

func (l *ledger) allReported() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.reported })
}

func (l *ledger) allSettled() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.settled() })
}

// atRest says that no set has anything to do.
func (l *ledger) atRest() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.reported || a.spec != a.replicas })
}
