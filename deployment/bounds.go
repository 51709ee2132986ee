// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ErrBound is wrapped by the errors about a maxSurge or maxUnavailable that is
// missing or cannot be read.
var ErrBound = errors.New("not a number or percentage of machines")

// FencePosts turns the two bounds of an update into numbers of machines:
// percentages are of desired, the surge is rounded up, the unavailable part is
// rounded down. If both come out as zero no update could ever move, so
// unavailable becomes 1, also for desired 0.
//
// As in the reference system every % sign of a text is ignored ("3" is 3 %) and
// negative values pass through; [Normalise] reads them as zero. Results that do
// not fit are cut off at the limits of an int32. An error wraps [ErrBound], and
// both numbers are then zero.
func FencePosts(maxSurge, maxUnavailable *intstr.IntOrString, desired int32) (surge, unavailable int32, err error) {
	if surge, err = resolve(maxSurge, desired, true); err != nil {
		return 0, 0, fmt.Errorf("maxSurge: %w", err)
	}
	if unavailable, err = resolve(maxUnavailable, desired, false); err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable, nil
}

func resolve(v *intstr.IntOrString, desired int32, up bool) (int32, error) {
	if v == nil {
		return 0, fmt.Errorf("%w: missing", ErrBound)
	}
	switch v.Type {
	case intstr.Int:
		return v.IntVal, nil
	case intstr.String:
		percent, err := strconv.ParseInt(strings.ReplaceAll(v.StrVal, "%", ""), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%w: %q", ErrBound, v.StrVal)
		}
		product := percent * int64(desired)
		n := product / 100
		switch rest := product % 100; {
		case up && rest > 0:
			n++
		case !up && rest < 0:
			n--
		}
		return narrow(n), nil
	default:
		return 0, fmt.Errorf("%w: type %d", ErrBound, v.Type)
	}
}

// narrow cuts a number off at the limits of an int32.
func narrow(n int64) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

// update returns the bounds that belong to the strategy, nil if it has none.
func update(s v1alpha1.MachineDeploymentStrategy) *v1alpha1.UpdateConfiguration {
	switch {
	case s.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		return &s.RollingUpdate.UpdateConfiguration
	case s.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		return &s.InPlaceUpdate.UpdateConfiguration
	default:
		return nil
	}
}

func manual(s v1alpha1.MachineDeploymentStrategy) bool {
	return s.InPlaceUpdate != nil && s.InPlaceUpdate.OrchestrationType == v1alpha1.OrchestrationTypeManual
}

// MaxSurge returns how many machines an update may add to the replicas: a rolling
// one, or one in place with automatic orchestration, which creates the new set with
// them. It is 0 for the other strategies, for nil, and for bounds that cannot be read.
func MaxSurge(d *v1alpha1.MachineDeployment) int32 {
	if d == nil || d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && manual(d.Spec.Strategy) {
		return 0
	}
	u := update(d.Spec.Strategy)
	if u == nil {
		return 0
	}
	surge, _, _ := FencePosts(u.MaxSurge, u.MaxUnavailable, d.Spec.Replicas)
	return surge
}

// MaxUnavailable returns how many of the replicas may be unavailable during a
// rolling or an in-place update, never more than there are. An in-place update
// with manual orchestration has no surge, so that at least one machine may be
// unavailable there. The result is 0 for Recreate, for no replicas, for nil,
// and for bounds that cannot be read.
func MaxUnavailable(d *v1alpha1.MachineDeployment) int32 {
	if d == nil || d.Spec.Replicas == 0 {
		return 0
	}
	u := update(d.Spec.Strategy)
	if u == nil {
		return 0
	}
	surge := u.MaxSurge
	if d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && manual(d.Spec.Strategy) {
		surge = new(intstr.FromInt32(0))
	}
	_, unavailable, err := FencePosts(surge, u.MaxUnavailable, d.Spec.Replicas)
	if err != nil {
		return 0
	}
	return min(unavailable, d.Spec.Replicas)
}

// MinAvailable returns how many machines have to stay available during a
// rolling update. It is 0 for the other strategies and for nil.
func MinAvailable(d *v1alpha1.MachineDeployment) int32 {
	if d == nil || d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
		return 0
	}
	return narrow(int64(d.Spec.Replicas) - int64(MaxUnavailable(d)))
}

// Bounds are how far a deployment may be from the number of machines that it
// wants. None is negative, Unavailable is not above Desired, and a rolling update of
// any machines has room to move.
type Bounds struct {
	// Desired is how many machines are wanted.
	Desired int32
	// Surge is how many more may exist during an update; see [MaxSurge].
	Surge int32
	// Unavailable is how many of those wanted need not be available.
	Unavailable int32
}

// Normalise returns the bounds that decisions about a deployment work with,
// whatever it says: replicas and bounds below 0 count as 0, percentages are
// resolved (see [FencePosts]), what exceeds the replicas is cut off, and if a
// rolling update had no room to move one machine may be unavailable. A recreation
// has no surge, and all of its machines may be unavailable.
//
// The error wraps [ErrStrategy] or [ErrBound] if the strategy or its bounds cannot
// be read; the bounds then allow no machine more and none less than wanted. A nil
// deployment wants none and is an error as well.
func Normalise(d *v1alpha1.MachineDeployment) (Bounds, error) {
	if d == nil {
		return Bounds{}, fmt.Errorf("%w: no deployment", ErrStrategy)
	}
	b := Bounds{Desired: max(0, d.Spec.Replicas)}
	switch d.Spec.Strategy.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		b.Unavailable = b.Desired
		return b, nil
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType, v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
	default:
		return b, fmt.Errorf("%w: %q", ErrStrategy, d.Spec.Strategy.Type)
	}
	u := update(d.Spec.Strategy)
	if u == nil {
		return b, fmt.Errorf("%w: no bounds for %s", ErrBound, d.Spec.Strategy.Type)
	}
	if _, _, err := FencePosts(u.MaxSurge, u.MaxUnavailable, b.Desired); err != nil {
		return b, err
	}
	b.Surge, b.Unavailable = max(0, MaxSurge(d)), max(0, MaxUnavailable(d))
	if d.Spec.Strategy.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && b.Surge == 0 && b.Unavailable == 0 {
		b.Unavailable = min(1, b.Desired)
	}
	return b, nil
}

// limits are the bounds as wide numbers, which do not overflow when added up.
type limits struct{ desired, surge, unavailable int64 }

// limitsOf returns the bounds of a deployment; those that cannot be read leave no
// room.
func limitsOf(d *v1alpha1.MachineDeployment) limits {
	b, _ := Normalise(d) // a deployment that is decided about has been validated
	return limits{desired: int64(b.Desired), surge: int64(b.Surge), unavailable: int64(b.Unavailable)}
}

// most is how many machines may exist; none if none are wanted.
func (l limits) most() int64 {
	if l.desired == 0 {
		return 0
	}
	return l.desired + l.surge
}

// least is how many machines have to be available.
func (l limits) least() int64 { return l.desired - l.unavailable }
