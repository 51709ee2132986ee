// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A ledger keeps what the sets were seen to have and what this decision makes
// of it. All bounds are kept here: how many machines there may be at most, and
// how many are available at least.
type ledger struct {
	limits
	accounts []*account
}

func (c *pass) ledger() *ledger { return &ledger{limits: limitsOf(c.d), accounts: c.accounts} }

// of returns the account of a set.
func (l *ledger) of(s *v1alpha1.MachineSet) *account {
	for _, a := range l.accounts {
		if a.set == s {
			return a
		}
	}
	return nil
}

// most returns how many machines may exist for the set: what it was asked for
// comes on top of what is on its way out, or is about to be, as a set replaces a
// machine that somebody named without waiting until it is gone. A set that creates
// nothing has what it has, and so has one that has seen that it is being deleted.
func (a *account) most() int64 {
	if a.idle || a.doomed && a.reported {
		return a.replicas
	}
	return max(a.spec+a.leaving+int64(len(a.goers)), a.replicas)
}

// sure returns how many machines of the set are still available when all have
// gone of which this pass knows that they go. Of what was seen and what was
// reported the smaller number counts. A set whose status is of an earlier spec may
// have been told anything in between, and one that is being deleted loses all:
// nothing is sure of them.
func (a *account) sure() int64 {
	if !a.reported || a.doomed {
		return 0
	}
	going := int64(a.counts.Available) - a.available
	return max(0, min(a.available, int64(a.set.Status.AvailableReplicas)-going)-a.lost)
}

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

// asked returns the sum of the planned sizes.
func (l *ledger) asked() int64 { return l.sum(func(a *account) int64 { return a.spec }) }

// total returns how many machines may exist.
func (l *ledger) total() int64 { return l.sum((*account).most) }

// available returns how many machines are sure to be available.
func (l *ledger) available() int64 { return l.sum((*account).sure) }

// slack returns how many available machines may still go; below 0 if there are
// too few already.
func (l *ledger) slack() int64 { return l.available() - l.least() }

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

func (l *ledger) allReported() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.reported })
}

// allSettled says that all sets have done what they were told.
func (l *ledger) allSettled() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.settled() })
}

// atRest says that no set has anything to do.
func (l *ledger) atRest() bool {
	return !slices.ContainsFunc(l.accounts, func(a *account) bool { return !a.reported || a.spec != a.replicas })
}

// oldActive returns the accounts of the old sets that ask for machines, or did
// so when seen, and that are not being deleted.
func (l *ledger) oldActive(asSeen bool) []*account {
	var out []*account
	for _, a := range l.accounts {
		size := a.spec
		if asSeen {
			size = int64(a.set.Spec.Replicas)
		}
		if !a.isNew && !a.doomed && size > 0 {
			out = append(out, a)
		}
	}
	return out
}

// budget is by how many machines the old sets may shrink before the rest, all
// available, would be too few.
func (l *ledger) budget() int64 {
	missing := l.sum(func(a *account) int64 {
		if a.isNew {
			return max(0, a.spec-a.sure())
		}
		return 0
	})
	return l.asked() - l.least() - missing
}
