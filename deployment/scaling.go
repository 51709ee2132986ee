// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// scaling says whether the replicas changed. An update in place or a recreation
// that is under way brings all sets to their sizes anyway, in its own order.
func (c *pass) scaling() bool {
	if !ScalingEvent(c.d, c.newSet, c.standing()) {
		return false
	}
	switch c.d.Spec.Strategy.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		return c.newSet.Spec.Replicas > 0 && len(active(c.old)) == 0
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		return !c.inPlace()
	default:
		return true
	}
}

// standing are the old sets that are not being deleted. The others are not scaled
// any more, and neither tell nor take a change of the replicas.
func (c *pass) standing() []*v1alpha1.MachineSet {
	return slices.DeleteFunc(slices.Clone(c.old), func(s *v1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil })
}

// scale brings the sets to a changed number of replicas.
func (c *pass) scale() {
	if c.inPlace() {
		c.scaleInPlace()
		return
	}
	l := c.ledger()
	how := unwanted
	switch {
	case ActiveOrLatest(c.newSet, c.standing()) != nil:
		how = unwantedNow
	case Saturated(c.d, c.newSet):
		how = evenPreserved // they are replaced already
	}
	for _, t := range c.scaleTargets() {
		c.scaleTo(l, l.of(t.Set), int64(t.To), how)
	}
}

// scaleTargets are those of [ScaleTargets], with the machines that somebody named
// taken first from the sets that have them. While a roll-out is paused, every
// strategy shares a change out.
func (c *pass) scaleTargets() []SetSize {
	named, standing := c.namedInSets(), c.standing()
	if ActiveOrLatest(c.newSet, standing) != nil || Saturated(c.d, c.newSet) || len(named) == 0 {
		return scaleTargets(c.d, c.newSet, standing)
	}
	as := map[*v1alpha1.MachineSet]*v1alpha1.MachineSet{} // what is left, and of which set
	without := func(s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
		if s == nil {
			return nil
		}
		left := *s
		left.Spec.Replicas -= named[s]
		as[&left] = s
		return &left
	}
	newSet := without(c.newSet)
	var old []*v1alpha1.MachineSet
	for _, s := range standing {
		old = append(old, without(s))
	}
	var out []SetSize
	for _, t := range shareOut(c.d, newSet, old) {
		s := as[t.Set]
		out = append(out, SetSize{Set: s, To: min(t.To, s.Spec.Replicas)}) // no set grows in a cut
	}
	for _, left := range append(old, newSet) { // emptied by it
		if left != nil && left.Spec.Replicas <= 0 && as[left].Spec.Replicas > 0 {
			out = append(out, SetSize{Set: as[left], To: 0})
		}
	}
	return out
}

// namedInSets counts the machines that somebody named, by their sets, but not more
// than the replicas were lowered by.
func (c *pass) namedInSets() map[*v1alpha1.MachineSet]int32 {
	named := map[*v1alpha1.MachineSet]int32{}
	left := int64(c.loweredBy())
	for _, a := range c.accounts {
		if n := min(left, c.demanded(a)); n > 0 && !a.doomed {
			named[a.set] = narrow(n)
			left -= n
		}
	}
	return named
}

// loweredBy returns by how many the replicas are fewer than the sets were sized for.
func (c *pass) loweredBy() int32 {
	var before int32
	for _, s := range active(c.in.Sets) {
		if n, ok := intAnnotation(s, v1alpha1.DesiredReplicasAnnotation); ok {
			before = max(before, n)
		}
	}
	return max(0, before-c.d.Spec.Replicas)
}

// scaleTo brings one set as near to a size as the bounds allow. What it was
// sized for is written in any case: what is missing is for the roll-out, or for
// the next time.
func (c *pass) scaleTo(l *ledger, a *account, size int64, how taking) {
	changed := false
	if size > a.spec {
		size = min(size, max(a.spec, l.desired)) // what is beyond would only have to go again
	}
	if c.d.Spec.Paused && sizedForPresent(a.set.Annotations, c.d) { // the surge is for a roll-out, and there is none
		size = min(size, max(a.spec, a.spec+l.desired-l.asked()))
	}
	switch {
	case a.doomed:
		c.hold(a.set.Name, ReasonSetDeleting, "the set is being deleted and not scaled any more")
		return
	case size > a.spec && a.isNew && a.spec == 0 && c.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType && c.oldMachinesLeft(l):
	case size > a.spec:
		changed = c.growSet(l, a, size)
	case size < a.spec:
		message := fmt.Sprintf("%d > %d for %d replicas", a.spec, size, l.desired)
		c.take(l, a, a.spec-size, how)
		changed = c.resize(a, a.spec, message)
		if a.spec > size {
			c.holdAvailability(l, a)
		}
	}
	if !changed && !sizedForPresent(a.set.Annotations, c.d) {
		c.size(a, narrow(a.spec), "sized for the present number of replicas")
	}
}

// enable lets a set create machines again that was an old one of an update in
// place.
func (c *pass) enable(a *account) {
	if machineset.ScaleUpDisabled(a.next) {
		delete(a.next.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
		a.changes = append(a.changes, "it creates machines again")
	}
}
