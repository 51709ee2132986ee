// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Scaling is the effect of changed replicas of a deployment on its sets.
type Scaling struct {
	// Due means that the replicas changed after the sets were sized: an active set was sized for
	// another number, or no set is active although replicas are desired. It is false without a new
	// set. Sets without the annotation are skipped.
	Due bool
	// Alone is the set that gets the whole change: the only active one, or without one the new set,
	// or the youngest old one. It is nil if several sets are active, or without sets.
	Alone *v1alpha1.MachineSet
	// Saturated means that the new set has all replicas of the deployment: its size, the number
	// that it was sized for, and its available machines are equal to them.
	Saturated bool
	// Targets are the new sizes, in the order of their writes. Other sets keep their sizes.
	Targets []Target
}

// ScalingOf returns the effect of the replicas of a deployment on its sets.
//
// A single set gets all replicas. If the new set is saturated, the others get 0. In a rolling
// update with several active sets, growth goes to the new set, or without one to the youngest old
// set. A decrease is shared in proportion, the largest set first; that set also gets the rest of
// the rounding. No set grows in a decrease, and afterwards the sum is at most replicas + surge.
// Other strategies have no targets then.
//
// Availability is not considered: [Decide] carries out as much as the bounds allow. Nil sets are
// skipped. A nil deployment has no scaling.
func ScalingOf(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) Scaling {
	if d == nil {
		return Scaling{}
	}
	out := Scaling{Due: scalingDue(d, newSet, old), Alone: alone(newSet, old), Saturated: saturated(d, newSet)}
	if out.Alone == nil && !out.Saturated && d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
		return out
	}
	b, _ := BoundsOf(d) // bounds that cannot be read allow no machine more
	for _, t := range scaleTargets(d, b, newSet, old, nil, nil) {
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

// inSets are numbers of machines by set.
type inSets map[*v1alpha1.MachineSet]int32

// scaleTargets returns the new sizes of the sets for any strategy. In a shared decrease, machines
// that were named for deletion come first, and unavailable ones come before available ones.
func scaleTargets(d *v1alpha1.MachineDeployment, b Bounds, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, named, unavailable inSets) []setSize {
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
		preferUnavailable(sizes, named, unavailable)
	case len(named) == 0: // no set grows in a cut
		return growOne(newSet, sizes, toAdd)
	}
	return sizes
}

// Share is one set in a proportional change of the total.
type Share struct {
	Size    int32 // replicas of the set
	Desired int32 // replicas of the deployment
	Surge   int32 // machines allowed above Desired
	Max     int32 // former Desired + Surge, 0 or less if not known
	ToAdd   int32 // change of the total, negative for a decrease
	Added   int32 // part of ToAdd that other sets have
}

// Change returns the change of the set. The part of the set in the former total is its part in the
// new one, rounded half away from zero. The result is never more than the rest of ToAdd. It may
// have the other sign than ToAdd, which [ScalingOf] excludes. If the former total is not known, the
// set gets all of the rest.
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

// setSize is the new size of a set.
type setSize struct {
	set *v1alpha1.MachineSet
	to  int32
}

// scaleOrder returns the active sets: the old ones, youngest first, and then the new one.
func scaleOrder(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	sets := byCreation(old)
	slices.Reverse(sets)
	return active(append(sets, newSet))
}

// growOne adds all growth to the new set, or without one to the youngest active set.
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

// preferUnavailable has each set give its unavailable machines before another gives available ones.
// The sum does not change.
func preferUnavailable(sizes []setSize, named, unavailable inSets) {
	cut := func(t setSize) int32 { return t.set.Spec.Replicas - named[t.set] - t.to }
	for i := range sizes {
		for j := range sizes {
			more, spare := cut(sizes[i])-unavailable[sizes[i].set], unavailable[sizes[j].set]-cut(sizes[j])
			if n := min(more, spare, sizes[j].to); n > 0 {
				sizes[i].to += n
				sizes[j].to -= n
			}
		}
	}
}

// cutShares shares a decrease in proportion, the largest set first. The rest of the rounding is
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

// scaling reports whether the replicas changed. An in-place update or a recreation that is not
// finished reaches the new size by itself.
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

// inPlace reports whether an in-place update is not finished, so that changed replicas are part of
// it: an old set has replicas, or machines that moved are not acknowledged.
func (c *pass) inPlace() bool {
	if !updatesInPlace(c.d) || c.in.NoCluster || c.newSet == nil {
		return false
	}
	moving := func(a *account) bool { return a.counts.Moving > 0 && !a.deleting }
	return len(active(c.old)) > 0 || slices.ContainsFunc(c.ledger.accounts, moving)
}

// standing returns the old sets without a deletion timestamp. The others are not scaled.
func (c *pass) standing() []*v1alpha1.MachineSet {
	return slices.DeleteFunc(slices.Clone(c.old), func(s *v1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil })
}

// scale brings the sets to changed replicas.
func (c *pass) scale() {
	standing, rule := c.standing(), surplus
	switch {
	case alone(c.newSet, standing) != nil:
		rule = surplusUnbounded
	case saturated(c.d, c.newSet):
		rule = withPreserved // the old machines are already replaced
	}
	for _, t := range scaleTargets(c.d, c.ledger.Bounds, c.newSet, standing, c.namedInSets(), c.unavailableInSets()) {
		c.scaleTo(c.ledger.of(t.set), int64(t.to), rule)
	}
}

// namedInSets returns the numbers of machines of the sets that were named for deletion. Their sum
// is at most the decrease of the replicas.
func (c *pass) namedInSets() inSets {
	var before int32
	for _, s := range active(c.in.Sets) {
		if n, ok := intAnnotation(s, v1alpha1.DesiredReplicasAnnotation); ok {
			before = max(before, n)
		}
	}
	named := inSets{}
	left := int64(max(0, before-c.d.Spec.Replicas))
	for _, a := range c.ledger.accounts {
		if n := min(left, a.spec, a.demanded()+c.ledger.namedToStay(a)); n > 0 && !a.deleting {
			named[a.set] = narrow(n)
			left -= n
		}
	}
	return named
}

// unavailableInSets returns the numbers of machines of the sets that are neither available nor
// preserved nor named. Machines that join count only while the rollout is paused, because otherwise
// it would create others for them.
func (c *pass) unavailableInSets() inSets {
	out := inSets{}
	for _, a := range c.ledger.accounts {
		out[a.set] = narrow(count(a.stay, func(m *v1alpha1.Machine) bool {
			return c.cost(a, m) == costsNothing && !c.ledger.named[m.UID] && (c.d.Spec.Paused || !joining(m))
		}))
	}
	return out
}

// scaleTo brings one set as close to a size as the bounds allow. The number that it was sized for
// is written in any case. The rollout or the next decision does the rest.
func (c *pass) scaleTo(a *account, size int64, rule cutRule) {
	l, changed := c.ledger, false
	if size > a.spec {
		size = min(size, max(a.spec, l.Desired)) // more machines would have to be deleted again
	}
	if was, ok := intAnnotation(a.set, v1alpha1.DesiredReplicasAnnotation); ok && was >= c.d.Spec.Replicas && c.d.Spec.Paused { // only a rollout uses the surge
		size = min(size, max(a.spec, a.spec+l.Desired-l.planned()))
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
