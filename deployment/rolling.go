// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// roll takes the next step of a rolling update: the new set first, and only if
// that does not change, the old ones.
func (c *pass) roll() {
	l := c.ledger()
	if c.newSet == nil {
		c.create(l)
		return
	}
	if c.sizeNewSet(l) {
		return
	}
	c.reduceOldSets(l)
}

// sizeNewSet brings the new set towards the replicas, and says whether it
// changes.
func (c *pass) sizeNewSet(l *ledger) bool {
	a := l.of(c.newSet)
	switch {
	case a.doomed:
		c.hold(c.newSet.Name, ReasonSetDeleting, "the set for the present template is being deleted; another one is created when it is gone")
		return false
	case a.spec == l.desired:
		return false
	case a.spec > l.desired:
		return c.shrinkNewSet(l, a)
	default:
		return c.growSet(l, a, l.desired)
	}
}

// shrinkNewSet takes from a new set that is too large what the availability
// allows; if it is the only active one, in the end all that is too much.
func (c *pass) shrinkNewSet(l *ledger, a *account) bool {
	want := a.spec - l.desired
	allowed := l.reducible(a, want)
	if allowed < want && l.asked() == a.spec {
		at := c.outOfPatience()
		if !at.After(c.now) {
			allowed = want
		} else {
			c.out.Holds = append(c.out.Holds, Hold{
				Subject: a.set.Name, Reason: ReasonStuck, Until: at,
				Message: fmt.Sprintf("%d > %d replicas, and %d machines sure to be available, minimum %d; it shrinks in any case if nothing moves", a.spec, l.desired, l.sureNow(), l.least()),
			})
		}
	}
	changed := c.resize(a, a.spec-allowed, fmt.Sprintf("%d > %d replicas", a.spec, l.desired))
	if allowed < want {
		c.holdAvailability(l, a)
	}
	return changed
}

// growSet grows a set as far towards a size as there is room, and says whether
// it changes.
func (c *pass) growSet(l *ledger, a *account, size int64) bool {
	if c.frozen() {
		return false
	}
	room, silent, surplus := l.room(a)
	total := l.total()
	switch {
	case silent != nil:
		c.hold(silent.Name, ReasonSetNotReported, fmt.Sprintf("%s; %s does not grow until then", notReported(silent), a.set.Name))
		return false
	case surplus != nil:
		c.hold(surplus.Name, ReasonWaitingForMachines, fmt.Sprintf("%d machines exist, %d are wanted; it does not grow until they are gone", a.replicas, a.spec))
		return false
	case room == 0:
		c.hold(a.set.Name, ReasonSurgeUsedUp, fmt.Sprintf("%d machines >= %d replicas + %d max surge", total, l.desired, l.surge))
		return false
	}
	return c.resize(a, min(size, a.spec+room), fmt.Sprintf("%d machines < %d replicas + %d max surge", total, l.desired, l.surge))
}

// reduceOldSets takes machines away from the old sets: as many unavailable ones
// as the new set does not need, then as many others as the availability allows.
func (c *pass) reduceOldSets(l *ledger) {
	before := l.asked()
	c.reduceUnavailable(l)
	c.reduceAvailable(l)
	if l.asked() == before && c.breakDeadlock(l) {
		return
	}
	message := fmt.Sprintf("%d machines sure to be available, minimum %d", l.sureNow(), l.least())
	for _, a := range l.oldActive(true) {
		c.resize(a, a.spec, message)
	}
	if left := l.oldActive(false); len(left) > 0 && l.asked() == before {
		c.holdAvailability(l, left[0])
	}
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
			return max(0, a.spec-a.available)
		}
		return 0
	})
	return l.asked() - l.least() - missing
}

func (c *pass) reduceUnavailable(l *ledger) {
	budget := l.budget()
	for _, a := range l.oldActive(false) {
		if budget <= 0 {
			return
		}
		k := l.reducible(a, min(budget, max(0, a.spec-a.available)))
		a.spec -= k
		budget -= k
	}
}

func (c *pass) reduceAvailable(l *ledger) {
	spare := l.sum(func(a *account) int64 { return a.available }) - l.least()
	for _, a := range l.oldActive(false) {
		if spare <= 0 {
			return
		}
		k := l.reducible(a, min(spare, a.spec))
		a.spec -= k
		spare -= k
	}
}

// breakDeadlock gives up one machine of an old set with unavailable ones, if
// nothing has moved for a while: the set may delete an available machine, but
// otherwise the roll-out would never end. It says whether it does something or
// has said when.
func (c *pass) breakDeadlock(l *ledger) bool {
	if !l.allSettled() || l.budget() <= 0 || slices.ContainsFunc(l.accounts, func(a *account) bool { return a.isNew && a.available < a.spec }) {
		return false
	}
	stuck := slices.DeleteFunc(l.oldActive(false), func(a *account) bool { return a.available >= a.spec })
	if len(stuck) == 0 {
		return false
	}
	worst := slices.MinFunc(stuck, func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.available, b.available), older(a.set, b.set))
	})
	if at := c.outOfPatience(); at.After(c.now) {
		c.out.Holds = append(c.out.Holds, Hold{
			Subject: worst.set.Name, Reason: ReasonStuck, Until: at,
			Message: fmt.Sprintf("%d of its %d machines are available, and %d machines sure to be available <= %d replicas - %d max unavailable; one is given up if nothing moves", worst.available, worst.spec, l.sureNow(), l.desired, l.unavailable),
		})
		return true
	}
	return c.resize(worst, worst.spec-1, fmt.Sprintf("nothing moves: %d of its %d machines are available, and none can be spared", worst.available, worst.spec))
}

// outOfPatience returns when a roll-out that stands still has done so for long
// enough.
func (c *pass) outOfPatience() time.Time {
	patience := c.policy.Patience
	if patience <= 0 {
		patience = defaultPatience
	}
	cond := GetCondition(c.d.Status, v1alpha1.MachineDeploymentProgressing)
	switch {
	case Progressing(c.d.Status, c.out.Status):
		return c.now.Add(patience)
	case cond != nil:
		return cond.LastUpdateTime.Add(patience)
	default:
		return time.Time{}
	}
}

func (c *pass) holdAvailability(l *ledger, a *account) {
	for _, b := range l.accounts {
		if !b.reported {
			c.hold(b.set.Name, ReasonSetNotReported, fmt.Sprintf("%s; %s does not shrink until then", notReported(b.set), a.set.Name))
			return
		}
	}
	c.hold(a.set.Name, ReasonMinimumAvailable, fmt.Sprintf("%d machines sure to be available <= %d replicas - %d max unavailable", l.sureNow(), l.desired, l.unavailable))
}

// resize asks for a size, and says whether the set changes.
func (c *pass) resize(a *account, to int64, message string) bool {
	a.spec = to
	if narrow(to) == a.set.Spec.Replicas {
		return false
	}
	c.write(a.set, narrow(to), message)
	return true
}

// write asks for a size and for the annotations that belong to it.
func (c *pass) write(s *v1alpha1.MachineSet, to int32, message string) {
	c.add(Scale{
		Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		From: s.Spec.Replicas, To: to,
		Annotations: replicaAnnotations(c.d),
		Message:     message,
	})
}
