// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ErrStrategy is wrapped by errors about a strategy of an unknown type.
var ErrStrategy = errors.New("unknown strategy")

// FindSets divides the sets of a deployment: the new one is the oldest whose
// template equals that of the deployment (see [EqualIgnoreHash]), nil if there
// is none; the old ones are all others, younger duplicates of the new one
// included. Both follow creation time, then name, then UID. Nil sets are left
// out. The sets are returned as they are, not as copies.
func FindSets(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet) (newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) {
	for _, s := range byCreation(sets) {
		if newSet == nil && d != nil && EqualIgnoreHash(s.Spec.Template, d.Spec.Template) {
			newSet = s
			continue
		}
		old = append(old, s)
	}
	return newSet, old
}

// byCreation returns the sets that are not nil, oldest first.
func byCreation(sets []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	out := make([]*v1alpha1.MachineSet, 0, len(sets))
	for _, s := range sets {
		if s != nil {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, older)
	return out
}

func older(a, b *v1alpha1.MachineSet) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// active returns the sets that ask for machines, in the same order.
func active(sets []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	var out []*v1alpha1.MachineSet
	for _, s := range sets {
		if s != nil && s.Spec.Replicas > 0 {
			out = append(out, s)
		}
	}
	return out
}

// NewSetSize returns the size that the new set, which has current replicas now,
// should get next. Total is the number of machines to count against the surge;
// the hard bound needs the sum over all sets of the larger of spec and status
// replicas, because machines that were asked for and are not reported yet exist
// already as far as the bound is concerned.
//
// A rolling update, and an in-place update with automatic orchestration, fill
// the room up to desired + surge, but never beyond desired; the rest follows
// from the strategy (Recreate: desired; manual in-place update: 0). A set that
// is too large is cut to desired if there is any room. An unknown strategy is
// an error that wraps [ErrStrategy], an unreadable surge one that wraps
// [ErrBound]; the size is then 0.
func NewSetSize(strategy v1alpha1.MachineDeploymentStrategy, desired, current, total int32) (int32, error) {
	switch strategy.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		return desired, nil
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		if manual(strategy) {
			return 0, nil
		}
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
	default:
		return 0, fmt.Errorf("%w: %q", ErrStrategy, strategy.Type)
	}
	u := update(strategy)
	if u == nil {
		return 0, fmt.Errorf("maxSurge: %w: missing", ErrBound)
	}
	surge, err := resolve(u.MaxSurge, desired, true)
	if err != nil {
		return 0, fmt.Errorf("maxSurge: %w", err)
	}
	return fill(int64(desired), int64(surge), int64(current), int64(total)), nil
}

func fill(desired, surge, current, total int64) int32 {
	room := desired + surge - total
	if room <= 0 {
		return narrow(current)
	}
	return narrow(current + min(room, desired-current))
}
