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
// negative values pass through; [Decide] reads them as zero. Results that do
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

// MaxSurge returns how many machines a rolling update may add to the replicas.
// It is 0 for the other strategies, for nil, and for bounds that cannot be read.
func MaxSurge(d *v1alpha1.MachineDeployment) int32 {
	if d == nil || d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
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

// limits are the bounds that decisions work with: never negative, and never
// both zero for a rolling update of any machines.
type limits struct{ desired, surge, unavailable int64 }

func limitsOf(d *v1alpha1.MachineDeployment) limits {
	l := limits{
		desired:     int64(max(0, d.Spec.Replicas)),
		surge:       int64(max(0, MaxSurge(d))),
		unavailable: int64(max(0, MaxUnavailable(d))),
	}
	rolling := d.Spec.Strategy.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType
	if rolling && l.surge == 0 && l.unavailable == 0 {
		l.unavailable = min(1, l.desired)
	}
	return l
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
