// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
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
	Targets []SetSize
}

// ScalingOf returns the effect of the replicas of a deployment on its sets.
//
// A single set gets all replicas. If the new set is saturated, the others get 0. In a rolling
// update with several active sets, growth goes to the new set, or without one to the youngest old
// set. A decrease is shared in proportion, the largest set first; that set also gets the rest of
// the rounding. No set grows in a decrease, and afterwards the sum is at most replicas + surge.
// Other strategies have no targets then.
//
// Availability is not considered. Nil sets are skipped. A nil deployment has no scaling.
func ScalingOf(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) Scaling {
	if d == nil {
		return Scaling{}
	}
	out := Scaling{Due: ScalingDue(d, newSet, old), Alone: Alone(newSet, old), Saturated: Saturated(d, newSet)}
	if out.Alone == nil && !out.Saturated && d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
		return out
	}
	b, _ := LimitsOf(d) // bounds that cannot be read allow no machine more
	out.Targets = Targets(d, b, newSet, old, nil, nil)
	return out
}

// ScalingDue returns [Scaling].Due.
func ScalingDue(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) bool {
	if newSet == nil {
		return false
	}
	sets := Active(append(slices.Clip(old), newSet))
	if len(sets) == 0 {
		return d.Spec.Replicas > 0
	}
	return slices.ContainsFunc(sets, func(s *v1alpha1.MachineSet) bool {
		n, ok := IntAnnotation(s, v1alpha1.DesiredReplicasAnnotation)
		return ok && n != d.Spec.Replicas
	})
}

// Alone returns [Scaling].Alone.
func Alone(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) *v1alpha1.MachineSet {
	sets := ByCreation(append(slices.Clip(old), newSet))
	candidates := Active(sets)
	switch {
	case len(candidates) > 1 || len(sets) == 0:
		return nil
	case len(candidates) == 1:
		return candidates[0]
	}
	return cmp.Or(newSet, sets[len(sets)-1])
}

// Saturated returns [Scaling].Saturated.
func Saturated(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet) bool {
	if newSet == nil {
		return false
	}
	sized, ok := IntAnnotation(newSet, v1alpha1.DesiredReplicasAnnotation)
	want := d.Spec.Replicas
	return ok && sized == want && newSet.Spec.Replicas == want && newSet.Status.AvailableReplicas == want
}

// InSets are numbers of machines by set.
type InSets map[*v1alpha1.MachineSet]int32

// Targets returns the new sizes of the sets for any strategy. In a shared decrease, machines
// that were named for deletion come first, and unavailable ones come before available ones.
func Targets(d *v1alpha1.MachineDeployment, b Limits, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, named, unavailable InSets) []SetSize {
	if one := Alone(newSet, old); one != nil {
		return []SetSize{{one, max(0, d.Spec.Replicas)}}
	}
	replaced := Saturated(d, newSet)
	var sizes []SetSize
	var sum int64
	for _, s := range scaleOrder(newSet, old) {
		switch {
		case !replaced:
			sizes = append(sizes, SetSize{s, s.Spec.Replicas - named[s]})
			sum += int64(s.Spec.Replicas - named[s])
		case s != newSet:
			sizes = append(sizes, SetSize{s, 0})
		}
	}
	toAdd := b.Most() - sum
	if b.Desired == 0 {
		toAdd = -sum
	}
	switch {
	case replaced:
	case toAdd < 0:
		cutShares(d, sizes, Narrow(b.Surge), toAdd)
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
		return Narrow(min(fraction, allowed))
	}
	return Narrow(max(fraction, allowed))
}

// SetSize is the new size of a set.
type SetSize struct {
	Set *v1alpha1.MachineSet
	To  int32
}

// scaleOrder returns the active sets: the old ones, youngest first, and then the new one.
func scaleOrder(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	sets := ByCreation(old)
	slices.Reverse(sets)
	return Active(append(sets, newSet))
}

// growOne adds all growth to the new set, or without one to the youngest active set.
func growOne(newSet *v1alpha1.MachineSet, sizes []SetSize, toAdd int64) []SetSize {
	at := 0
	if newSet != nil {
		at = slices.IndexFunc(sizes, func(t SetSize) bool { return t.Set == newSet })
	}
	switch {
	case toAdd == 0 || len(sizes) == 0:
		return sizes
	case at < 0:
		return append(sizes, SetSize{newSet, Narrow(toAdd)})
	}
	sizes[at].To = Narrow(int64(sizes[at].To) + toAdd)
	return sizes
}

// preferUnavailable has each set give its unavailable machines before another gives available ones.
// The sum does not change.
func preferUnavailable(sizes []SetSize, named, unavailable InSets) {
	cut := func(t SetSize) int32 { return t.Set.Spec.Replicas - named[t.Set] - t.To }
	for i := range sizes {
		for j := range sizes {
			more, spare := cut(sizes[i])-unavailable[sizes[i].Set], unavailable[sizes[j].Set]-cut(sizes[j])
			if n := min(more, spare, sizes[j].To); n > 0 {
				sizes[i].To += n
				sizes[j].To -= n
			}
		}
	}
}

// cutShares shares a decrease in proportion, the largest set first. The rest of the rounding is
// taken from the first sets that have it.
func cutShares(d *v1alpha1.MachineDeployment, sizes []SetSize, surge int32, toAdd int64) {
	slices.SortStableFunc(sizes, func(a, b SetSize) int { return cmp.Or(cmp.Compare(b.To, a.To), Older(a.Set, b.Set)) })
	var added int64
	for i, t := range sizes {
		sizedFor, ok := IntAnnotation(t.Set, v1alpha1.MaxReplicasAnnotation)
		if !ok {
			sizedFor = d.Status.Replicas
		}
		share := min(0, Share{
			Size: t.To, Desired: d.Spec.Replicas, Surge: surge, Max: sizedFor, ToAdd: Narrow(toAdd), Added: Narrow(added),
		}.Change())
		sizes[i].To = max(0, t.To+share)
		added += int64(share)
	}
	for i := range sizes {
		if left := min(added-toAdd, int64(sizes[i].To)); left > 0 {
			sizes[i].To -= int32(left) //nolint:gosec // not above a number of replicas
			added -= left
		}
	}
}
