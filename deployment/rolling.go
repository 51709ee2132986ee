// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"

	"github.com/machinist-dev/machinist/machineset"
)

// roll takes the next step of a rolling update: the new set first, and only if
// that does not change, the old ones.
func (c *pass) roll() {
	l := c.ledger()
	if c.newSet == nil {
		if s := c.create(l); s != nil && s.Spec.Replicas == 0 { // it needs room first
			c.reduceOldSets(l)
		}
		return
	}
	short := c.withoutCapacity(l)
	if short > 0 && c.policy.OnNoCapacity == NoCapacityStop {
		return
	}
	if c.sizeNewSet(l) {
		return
	}
	if !c.reduceOldSets(l) && short > 0 && c.policy.OnNoCapacity == NoCapacityUseUnavailable {
		c.makePlace(l, int64(short))
	}
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
// allows.
func (c *pass) shrinkNewSet(l *ledger, a *account) bool {
	message := fmt.Sprintf("%d > %d replicas", a.spec, l.desired)
	want := a.spec - l.desired
	taken := c.take(l, a, want, unwanted)
	changed := c.resize(a, a.spec, message)
	if taken < want {
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
	if a.idle { // it is to create machines again, beginning with what it has
		a.idle, a.spec = false, min(a.spec, int64(a.counts.Present))
	}
	room, silent, surplus := l.room(a)
	total := l.total()
	switch {
	case machineset.Frozen(a.set):
		c.hold(a.set.Name, ReasonFrozen, fmt.Sprintf("label freeze=True: the set has %d machines and does not grow", a.spec))
		return false
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
	c.enable(a)
	return c.resize(a, min(size, a.spec+room), fmt.Sprintf("%d machines < %d replicas + %d max surge", total, l.desired, l.surge))
}

// reduceOldSets takes machines away from the old sets: as many unavailable ones
// as the new set does not need, then as many others as the availability allows.
// Preserved machines that are not available go when nothing else can. It says
// whether a set changes.
func (c *pass) reduceOldSets(l *ledger) bool {
	before := l.asked()
	budget := l.budget()
	for _, a := range l.oldActive(false) {
		budget -= c.take(l, a, min(budget, a.spec), brokenOnes)
	}
	spare := l.slack()
	for _, a := range l.oldActive(false) {
		spare -= c.take(l, a, min(spare, a.spec), spareOnes)
	}
	if l.asked() == before {
		c.reducePreserved(l)
	}
	message := fmt.Sprintf("%d machines available, minimum %d", l.available(), l.least())
	for _, a := range l.oldActive(true) {
		c.resize(a, a.spec, message)
	}
	changed := l.asked() < before
	if left := l.oldActive(false); len(left) > 0 && !changed {
		c.holdAvailability(l, left[0])
	}
	return changed
}

// reducePreserved lets preserved machines of old sets go that are not available,
// if all sets are at rest and all new machines available, so that nothing else is
// going to happen.
func (c *pass) reducePreserved(l *ledger) {
	if !l.allSettled() || slices.ContainsFunc(l.accounts, func(a *account) bool { return a.isNew && a.sure() < a.spec }) {
		return
	}
	budget := l.budget()
	for _, a := range l.oldActive(false) {
		budget -= c.take(l, a, min(budget, a.spec), evenPreserved)
	}
}

// holdAvailability says why machines of a set stay.
func (c *pass) holdAvailability(l *ledger, a *account) {
	for _, b := range l.accounts {
		if !b.reported {
			c.hold(b.set.Name, ReasonSetNotReported, fmt.Sprintf("%s; %s does not shrink until then", notReported(b.set), a.set.Name))
			return
		}
	}
	if l.slack() <= 0 {
		c.hold(a.set.Name, ReasonMinimumAvailable, fmt.Sprintf("%d machines available <= %d replicas - %d max unavailable", l.available(), l.desired, l.unavailable))
	}
}

// resize asks for a size, and says whether the set changes.
func (c *pass) resize(a *account, to int64, message string) bool {
	a.spec = to
	if narrow(to) == a.set.Spec.Replicas {
		return false
	}
	c.size(a, narrow(to), message)
	return true
}

// size asks for a size, names who goes for it, and writes the annotations that
// belong to it.
func (c *pass) size(a *account, to int32, message string) {
	if left := c.name(a, int64(to)); left > 0 { // who cannot be named stays
		to = narrow(min(int64(to)+int64(left), int64(a.set.Spec.Replicas)))
		a.spec = int64(to)
		c.hold(a.set.Name, ReasonBurst, "the annotations of the set are full, so that no more machines can be named to go")
	}
	a.next.Spec.Replicas, a.why = to, message
	if a.next.Annotations == nil {
		a.next.Annotations = map[string]string{}
	}
	maps.Copy(a.next.Annotations, replicaAnnotations(c.d))
	a.changes = append(a.changes, message)
}
