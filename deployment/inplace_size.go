// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"math"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// keepOldFromGrowing labels the old sets, so that none replaces a machine that has
// left it: what is missing is created by the new set.
func (u *updates) keepOldFromGrowing() {
	for _, a := range u.c.accounts {
		if a.isNew || a.doomed || machineset.ScaleUpDisabled(a.next) || a.spec == 0 && a.counts.Machines == 0 {
			continue
		}
		if a.next.Labels == nil {
			a.next.Labels = map[string]string{}
		}
		a.next.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		a.changes = append(a.changes, "its machines are updated in place, and it creates no others")
	}
}

// sizeSets brings the sum of all sizes to the replicas, and says whether a size
// changes in this pass. The new set takes what is missing. The old sets give what is
// too much because fewer are wanted, and all they have once the new set is full.
func (u *updates) sizeSets() bool {
	c, l := u.c, u.l
	switch missing := l.desired - u.oldSize() - u.has(); {
	case u.to.spec > l.desired:
		c.shrinkNewSet(l, u.to)
	case missing > 0:
		c.growSet(l, u.to, u.to.spec+missing)
	}
	u.cutOld(u.oldMachines()+u.has()-l.desired-l.surge, unwanted, fmt.Sprintf("%d replicas are wanted", l.desired))
	if u.to.spec >= l.desired {
		u.cutOld(math.MaxInt32, evenPreserved, "the new set has all the machines")
	}
	return slices.ContainsFunc(c.accounts, func(a *account) bool { return a.next.Spec.Replicas != a.set.Spec.Replicas })
}

// cutOld takes machines from the old sets: those that somebody named before all
// others, and else from the oldest set first. A set that does not see yet which
// machines have left it keeps its size, or it would delete others in their place.
func (u *updates) cutOld(tooMany int64, how taking, why string) {
	old := slices.DeleteFunc(u.l.oldActive(false), func(a *account) bool { return !a.seesAll() })
	for _, a := range old {
		named := int64(0)
		for _, m := range a.stay {
			if u.c.wanted[m.UID] {
				named++
			}
		}
		tooMany -= u.c.take(u.l, a, min(named, tooMany), how)
	}
	for _, a := range old {
		tooMany -= u.c.take(u.l, a, min(a.spec, tooMany), how)
		if a.spec != int64(a.next.Spec.Replicas) {
			u.c.resize(a, a.spec, why)
		}
		if tooMany > 0 && a.spec > 0 {
			u.c.holdAvailability(u.l, a)
		}
	}
}

// oldSize returns what the old sets ask for.
func (u *updates) oldSize() int64 {
	return u.l.sum(func(a *account) int64 {
		if a.isNew {
			return 0
		}
		return a.spec
	})
}

// oldMachines returns how many machines the old sets have or may still create.
func (u *updates) oldMachines() int64 {
	return u.l.sum(func(a *account) int64 {
		switch {
		case a.isNew:
			return 0
		case machineset.ScaleUpDisabled(a.set):
			return min(a.spec, int64(a.counts.Present))
		default:
			return a.spec
		}
	})
}
