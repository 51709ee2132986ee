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
	case u.to.spec > l.desired && u.to.counts.Moving > 0: // acknowledged first
	case u.to.spec > l.desired:
		c.shrinkNewSet(l, u.to)
	case missing > 0:
		c.growSet(l, u.to, u.to.spec+missing)
	}
	why := fmt.Sprintf("%d replicas are wanted", l.desired)
	tooMany := u.oldMachines() + u.has() - l.desired - l.surge
	tooMany -= u.cutNamed(tooMany, why)
	u.cutOld(tooMany, unwanted, why)
	if u.to.spec >= l.desired {
		back := u.givingBack()
		u.to.lost += back // nothing is replaced by a machine whose Node takes no pods yet
		u.cutOld(math.MaxInt32, evenPreserved, "the new set has all the machines")
		u.to.lost -= back
	}
	return slices.ContainsFunc(c.accounts, func(a *account) bool { return a.next.Spec.Replicas != a.set.Spec.Replicas })
}

// cutNamed takes machines that somebody named from the sets that have them, and
// returns how many. Those that are left count as gone: their sets let them go
// whatever their sizes are.
func (u *updates) cutNamed(tooMany int64, why string) int64 {
	taken := int64(0)
	for _, a := range u.c.accounts {
		named := int64(0)
		for _, m := range a.stay {
			if u.c.wanted[m.UID] {
				named++
			}
		}
		if a.doomed || !a.mayShrink() {
			continue
		}
		if n := u.c.take(u.l, a, min(named, tooMany-taken), unwanted); n > 0 {
			taken += n
			u.c.resize(a, a.spec, why)
		}
	}
	for _, o := range u.units {
		if o.available && machineset.NamedByAutoscaler(o.of.next, u.c.edited(o.machine)) {
			o.of.lost++
		}
	}
	return taken
}

// mayShrink says whether it is known what a set lets go if it gets smaller: it sees
// which machines have left it, or it would delete others in their place; and all
// that have come are acknowledged, so that they may be chosen.
func (a *account) mayShrink() bool { return a.seesAll() && a.counts.Moving == 0 }

// cutOld takes machines from the old sets, the oldest first.
func (u *updates) cutOld(tooMany int64, how taking, why string) {
	for _, a := range u.l.oldActive(false) {
		if !a.mayShrink() {
			continue
		}
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
