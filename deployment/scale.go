// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"math"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ScalingEvent says whether the replicas of the deployment changed since its
// sets were last sized: some active set was sized for another number, or no set
// is active though machines are wanted. Without a new set there is no scaling,
// only a roll-out. Sets that do not say what they were sized for are skipped.
func ScalingEvent(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) bool {
	if d == nil || newSet == nil {
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

// ActiveOrLatest returns the set that alone takes a change of the replicas: the
// only active one; if none is active the new one, or without one the youngest
// of the old. It is nil if several sets are active, or if there is no set.
func ActiveOrLatest(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) *v1alpha1.MachineSet {
	sets := byCreation(old)
	candidates := active(append(sets, newSet))
	switch {
	case len(candidates) == 1:
		return candidates[0]
	case len(candidates) > 1:
		return nil
	case newSet != nil:
		return newSet
	case len(sets) > 0:
		return sets[len(sets)-1]
	default:
		return nil
	}
}

// Saturated says whether the new set is all that the deployment wants: asked
// for, sized for and available are all equal to the replicas.
func Saturated(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet) bool {
	if d == nil || newSet == nil {
		return false
	}
	sized, ok := intAnnotation(newSet, v1alpha1.DesiredReplicasAnnotation)
	want := d.Spec.Replicas
	return ok && sized == want && newSet.Spec.Replicas == want && newSet.Status.AvailableReplicas == want
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

// Proportion returns by how much a set changes: its part of the total when it
// was last sized is its part of the total now, rounded half away from zero, and
// never more than what is left of ToAdd. The result may point the other way
// than ToAdd, which [ScaleTargets] does not let happen. If the former total is
// not known the set takes all that is left, as far as it can.
func Proportion(s Share) int32 {
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

// A SetSize is the size that a set should get.
type SetSize struct {
	// Set as it was observed.
	Set *v1alpha1.MachineSet
	// To is its new size.
	To int32
}

// ScaleTargets returns the sizes that sets should get after the replicas of a
// deployment changed, in the order in which they are to be written; sets that
// it leaves out keep theirs.
//
// If there is one set to take the change (see [ActiveOrLatest]) it gets the
// replicas. If the new set is saturated all others go. Otherwise a rolling
// update shares the change out, and other strategies do nothing: growth goes to
// the new set alone, active or not, or without one to the youngest old set; a
// cut is shared in proportion, the largest set first, which also takes what
// rounding leaves, and what is more than it has goes to the next. No set grows
// in a cut, and the sum never exceeds replicas + surge after one.
//
// The availability of machines is not looked at; [Plan] carries out only as
// much of it as the bounds allow.
func ScaleTargets(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []SetSize {
	if d == nil {
		return nil
	}
	rolling := d.Spec.Strategy.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType
	if !rolling && ActiveOrLatest(newSet, old) == nil && !Saturated(d, newSet) {
		return nil
	}
	return scaleTargets(d, newSet, old)
}

// scaleTargets is the same for every strategy.
func scaleTargets(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []SetSize {
	if one := ActiveOrLatest(newSet, old); one != nil {
		return []SetSize{{Set: one, To: max(0, d.Spec.Replicas)}}
	}
	if Saturated(d, newSet) {
		var out []SetSize
		for _, s := range scaleOrder(nil, old) {
			out = append(out, SetSize{Set: s, To: 0})
		}
		return out
	}
	return shareOut(d, newSet, old)
}

// shareOut shares a change of the replicas out among the sets.
func shareOut(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []SetSize {
	sets := scaleOrder(newSet, old)
	var sum int64
	for _, s := range sets {
		sum += int64(s.Spec.Replicas)
	}
	toAdd := limitsOf(d).most() - sum
	if toAdd >= 0 {
		return grow(sets, growing(newSet, old), toAdd)
	}
	return cut(d, sets, toAdd)
}

// scaleOrder returns the active sets, old ones youngest first, then the new one.
func scaleOrder(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	sets := byCreation(old)
	slices.Reverse(sets)
	return active(append(sets, newSet))
}

// growing returns the set that takes all growth, nil without any set.
func growing(newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) *v1alpha1.MachineSet {
	if newSet != nil {
		return newSet
	}
	sets := byCreation(old)
	if a := active(sets); len(a) > 0 {
		sets = a
	}
	if len(sets) == 0 {
		return nil
	}
	return sets[len(sets)-1]
}

func grow(sets []*v1alpha1.MachineSet, takes *v1alpha1.MachineSet, toAdd int64) []SetSize {
	var out []SetSize
	found := false
	for _, s := range sets {
		t := SetSize{Set: s, To: s.Spec.Replicas}
		if s == takes {
			t.To, found = narrow(int64(t.To)+toAdd), true
		}
		out = append(out, t)
	}
	if !found && takes != nil && toAdd > 0 {
		out = append(out, SetSize{Set: takes, To: narrow(int64(max(0, takes.Spec.Replicas)) + toAdd)})
	}
	return out
}

func cut(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet, toAdd int64) []SetSize {
	slices.SortStableFunc(sets, func(a, b *v1alpha1.MachineSet) int {
		return cmp.Or(cmp.Compare(b.Spec.Replicas, a.Spec.Replicas), older(a, b))
	})
	out := make([]SetSize, 0, len(sets))
	var added int64
	for _, s := range sets {
		share := min(0, Proportion(Share{
			Size:    s.Spec.Replicas,
			Desired: d.Spec.Replicas,
			Surge:   narrow(limitsOf(d).surge),
			Max:     sizedFor(d, s),
			ToAdd:   narrow(toAdd),
			Added:   narrow(added),
		}))
		out = append(out, SetSize{Set: s, To: max(0, s.Spec.Replicas+share)})
		added += int64(share)
	}
	for i := range out {
		left := min(added-toAdd, int64(out[i].To))
		if left > 0 {
			out[i].To -= int32(left) //nolint:gosec // not above a number of replicas
			added -= left
		}
	}
	return out
}

// sizedFor returns the total for which a set was last sized; a set that does
// not say so was sized for what there is now.
func sizedFor(d *v1alpha1.MachineDeployment, s *v1alpha1.MachineSet) int32 {
	if n, ok := intAnnotation(s, v1alpha1.MaxReplicasAnnotation); ok {
		return n
	}
	return d.Status.Replicas
}
