// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Scaling is what a change of the replicas of a deployment means for its sets.
type Scaling struct {
	// Due says that the replicas changed since the sets were last sized: some active set
	// was sized for another number, or no set is active though machines are wanted.
	// Without a new set there is no scaling, only a rollout. Sets that do not say what
	// they were sized for are skipped.
	Due bool
	// Alone is the set that takes the whole change: the only active one; if none is active
	// the new one, or without one the youngest of the old. It is nil if several sets are
	// active, or if there is no set.
	Alone *v1alpha1.MachineSet
	// Saturated says that the new set is all that the deployment wants: its size, what it
	// was sized for, and its available machines are all equal to the replicas.
	Saturated bool
	// Targets are the sizes that the sets should get, in the order in which they are to be
	// written. Sets that are left out keep theirs.
	Targets []Target
}

// ScalingOf returns what the replicas of a deployment mean for its sets.
//
// If one set takes the change it gets the replicas. If the new set is saturated all others
// get 0. Otherwise a rolling update shares the change out, and other strategies have no
// targets: growth goes to the new set alone, active or not, or without one to the youngest
// old set. A cut is shared in proportion, the largest set first, which also takes
// what rounding leaves, and what is more than it has goes to the next. No set grows in a
// cut, and the sum never exceeds replicas + surge after one.
//
// The availability of machines is not looked at: [Decide] carries out as much of it as the
// bounds allow. Nil sets are skipped. A nil deployment has no scaling.
func ScalingOf(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) Scaling {
	if d == nil {
		return Scaling{}
	}
	out := Scaling{Due: scalingDue(d, newSet, old), Alone: alone(newSet, old), Saturated: saturated(d, newSet)}
	if out.Alone == nil && !out.Saturated && d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
		return out
	}
	b, _ := BoundsOf(d) // bounds that cannot be read allow no machine more
	for _, t := range scaleTargets(d, b, newSet, old, nil) {
		out.Targets = append(out.Targets, Target{Name: t.set.Name, UID: t.set.UID, From: t.set.Spec.Replicas, To: t.to})
	}
	return out
}

func scalingDue(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) bool {
	if newSet == nil {
		return false
	}
	sets := active(append(slices.Clip(old), newSet))
	if len(sets) == 0 {
		return d.Spec.Replicas > 0
	}
	return slices.ContainsFunc(sets, func(s *v1alpha1.MachineSet) bool {
		n, ok := intAnnotation(s, v1alpha1.DesiredReplicasAnnotation)
		return ok && n != d.Spec.Replicas
	})
}

func alone(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) *v1alpha1.MachineSet {
	sets := byCreation(append(slices.Clip(old), newSet))
	candidates := active(sets)
	switch {
	case len(candidates) > 1 || len(sets) == 0:
		return nil
	case len(candidates) == 1:
		return candidates[0]
	}
	return cmp.Or(newSet, sets[len(sets)-1])
}

func saturated(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet) bool {
	if newSet == nil {
		return false
	}
	sized, ok := intAnnotation(newSet, v1alpha1.DesiredReplicasAnnotation)
	want := d.Spec.Replicas
	return ok && sized == want && newSet.Spec.Replicas == want && newSet.Status.AvailableReplicas == want
}

// scaleTargets returns the sizes that the sets should get, whatever the strategy. Of a cut
// that is shared out, the sets with named machines give those first.
func scaleTargets(d *v1alpha1.MachineDeployment, b Bounds, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, named map[*v1alpha1.MachineSet]int32) []setSize {
	if one := alone(newSet, old); one != nil {
		return []setSize{{one, max(0, d.Spec.Replicas)}}
	}
	replaced := saturated(d, newSet)
	var sizes []setSize
	var sum int64
	for _, s := range scaleOrder(newSet, old) {
		switch {
		case !replaced:
			sizes = append(sizes, setSize{s, s.Spec.Replicas - named[s]})
			sum += int64(s.Spec.Replicas - named[s])
		case s != newSet:
			sizes = append(sizes, setSize{s, 0})
		}
	}
	toAdd := b.Most() - sum
	if b.Desired == 0 {
		toAdd = -sum
	}
	switch {
	case replaced:
	case toAdd < 0:
		cutShares(d, sizes, narrow(b.Surge), toAdd)
	case len(named) == 0: // no set grows in a cut
		return growOne(newSet, sizes, toAdd)
	}
	return sizes
}

// A Share is one set's place in a proportional change of the total.
type Share struct {
	Size    int32 // present replicas of the set
	Desired int32 // replicas of the deployment now
	Surge   int32 // machines allowed above Desired
	Max     int32 // desired + surge when the set was last sized; not positive: not known
	ToAdd   int32 // change of the total, negative to shrink
	Added   int32 // the part of ToAdd that other sets took already
}

// Change returns by how much the set changes: its part of the total when it was last sized
// is its part of the total now, rounded half away from zero, and never more than what is
// left of ToAdd. The result may have the other sign than ToAdd, which [ScalingOf] does not
// let happen. If the former total is not known the set takes all that is left, as far as
// it can.
func (s Share) Change() int32 {
	if s.Size == 0 || s.ToAdd == 0 || s.ToAdd == s.Added {
		return 0
	}
	allowed := int64(s.ToAdd) - int64(s.Added)
	var fraction int64
	switch {
	case s.Desired == 0:
		fraction = -int64(s.Size)
	case s.Max <= 0:
		fraction = max(allowed, -int64(s.Size))
	default:
		total := int64(s.Desired) + int64(s.Surge)
		fraction = int64(math.Round(float64(int64(s.Size)*total)/float64(s.Max))) - int64(s.Size)
	}
	if s.ToAdd > 0 {
		return narrow(min(fraction, allowed))
	}
	return narrow(max(fraction, allowed))
}

// setSize is the size that a set should get.
type setSize struct {
	set *v1alpha1.MachineSet
	to  int32
}

// scaleOrder returns the active sets, old ones youngest first, then the new one.
func scaleOrder(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	sets := byCreation(old)
	slices.Reverse(sets)
	return active(append(sets, newSet))
}

// growOne gives all growth to the new set, or without one to the youngest that is active.
func growOne(newSet *v1alpha1.MachineSet, sizes []setSize, toAdd int64) []setSize {
	at := 0
	if newSet != nil {
		at = slices.IndexFunc(sizes, func(t setSize) bool { return t.set == newSet })
	}
	switch {
	case toAdd == 0 || len(sizes) == 0:
		return sizes
	case at < 0:
		return append(sizes, setSize{newSet, narrow(toAdd)})
	}
	sizes[at].to = narrow(int64(sizes[at].to) + toAdd)
	return sizes
}

// cutShares shares a cut out in proportion, the largest set first. What rounding leaves is
// taken from the first sets that have it.
func cutShares(d *v1alpha1.MachineDeployment, sizes []setSize, surge int32, toAdd int64) {
	slices.SortStableFunc(sizes, func(a, b setSize) int { return cmp.Or(cmp.Compare(b.to, a.to), older(a.set, b.set)) })
	var added int64
	for i, t := range sizes {
		sizedFor, ok := intAnnotation(t.set, v1alpha1.MaxReplicasAnnotation)
		if !ok {
			sizedFor = d.Status.Replicas
		}
		share := min(0, Share{
			Size: t.to, Desired: d.Spec.Replicas, Surge: surge, Max: sizedFor, ToAdd: narrow(toAdd), Added: narrow(added),
		}.Change())
		sizes[i].to = max(0, t.to+share)
		added += int64(share)
	}
	for i := range sizes {
		if left := min(added-toAdd, int64(sizes[i].to)); left > 0 {
			sizes[i].to -= int32(left) //nolint:gosec // not above a number of replicas
			added -= left
		}
	}
}

// scaling reports whether the replicas changed. An update in place or a recreation that
// is under way brings all sets to their sizes anyway, in its own order.
func (c *pass) scaling() bool {
	if !scalingDue(c.d, c.newSet, c.standing()) {
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

// inPlace reports whether an update in place is under way, so that a change of the
// replicas is part of it, and not for one set to take: an old set asks for machines, or
// machines have moved and are not acknowledged.
func (c *pass) inPlace() bool {
	if !updatesInPlace(c.d) || c.in.NoCluster || c.newSet == nil {
		return false
	}
	moving := func(a *account) bool { return a.counts.Moving > 0 && !a.deleting }
	return len(active(c.old)) > 0 || slices.ContainsFunc(c.ledger.accounts, moving)
}

// standing returns the old sets that are not being deleted. The others are not scaled any
// more, and neither tell nor take a change of the replicas.
func (c *pass) standing() []*v1alpha1.MachineSet {
	return slices.DeleteFunc(slices.Clone(c.old), func(s *v1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil })
}

// scale brings the sets to a changed number of replicas.
func (c *pass) scale() {
	standing, rule := c.standing(), surplus
	switch {
	case alone(c.newSet, standing) != nil:
		rule = surplusUnbounded
	case saturated(c.d, c.newSet):
		rule = withPreserved // they are replaced already
	}
	for _, t := range scaleTargets(c.d, c.ledger.Bounds, c.newSet, standing, c.namedInSets()) {
		c.scaleTo(c.ledger.of(t.set), int64(t.to), rule)
	}
}

// namedInSets returns how many named machines the sets have, but not more than the
// replicas were lowered by since the sets were sized.
func (c *pass) namedInSets() map[*v1alpha1.MachineSet]int32 {
	var before int32
	for _, s := range active(c.in.Sets) {
		if n, ok := intAnnotation(s, v1alpha1.DesiredReplicasAnnotation); ok {
			before = max(before, n)
		}
	}
	named := map[*v1alpha1.MachineSet]int32{}
	left := int64(max(0, before-c.d.Spec.Replicas))
	for _, a := range c.ledger.accounts {
		if n := min(left, a.spec, a.demanded()+c.ledger.namedToStay(a)); n > 0 && !a.deleting {
			named[a.set] = narrow(n)
			left -= n
		}
	}
	return named
}

// scaleTo brings one set as near to a size as the bounds allow. What it was sized for is
// written in any case: what is missing is for the rollout, or for the next decision.
func (c *pass) scaleTo(a *account, size int64, rule cutRule) {
	l, changed := c.ledger, false
	if size > a.spec {
		size = min(size, max(a.spec, l.Desired)) // what is beyond would only have to go again
	}
	if was, ok := intAnnotation(a.set, v1alpha1.DesiredReplicasAnnotation); ok && was >= c.d.Spec.Replicas && c.d.Spec.Paused { // the surge is for a rollout
		size = min(size, max(a.spec, a.spec+l.Desired-l.asked()))
	}
	switch {
	case a.deleting:
		c.hold("machineset/"+a.set.Name, reasonSetDeleting, "the set is being deleted and not scaled any more")
		return
	case size > a.spec && a.isNew && a.spec == 0 && c.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType && c.oldMachinesLeft():
	case size > a.spec:
		changed = c.grow(a, size)
	case size < a.spec:
		changed = c.shrink(a, size, fmt.Sprintf("%d > %d for %d replicas", a.spec, size, l.Desired), rule)
	}
	if !changed && !sizedForPresent(a.set.Annotations, c.d) {
		c.size(a, narrow(a.spec), "sized for "+replicas(l.Desired))
	}
}
