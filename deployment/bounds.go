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

// errBounds is wrapped by the errors of [BoundsOf].
var errBounds = errors.New("strategy without usable bounds")

// Bounds are the limits of a deployment. No field is negative, and Unavailable is at most Desired.
type Bounds struct {
	// Desired is spec.replicas.
	Desired int64
	// Surge is how many more machines may exist during a rollout.
	Surge int64
	// Unavailable is how many of the desired machines may be unavailable.
	Unavailable int64
}

// Most returns the maximum number of machines.
func (b Bounds) Most() int64 { return b.Desired + b.Surge }

// limit returns the maximum as a formula, for messages.
func (b Bounds) limit() string {
	return fmt.Sprintf("%d replicas + %d max surge", b.Desired, b.Surge)
}

// Least returns the minimum number of available machines.
func (b Bounds) Least() int64 { return b.Desired - b.Unavailable }

// BoundsOf returns the bounds of a deployment:
//   - Negative replicas and bounds count as 0.
//   - Percentages are of the replicas. maxSurge is rounded up, and maxUnavailable is rounded down.
//     The text "3" is 3%, as in MCM.
//   - If both bounds are 0, one machine may be unavailable, because no rollout could continue.
//   - Recreate has no surge, and all machines may be unavailable.
//   - An in-place update with manual orchestration has no surge.
//
// It returns an error if the strategy or a bound is invalid, or if the deployment is nil.
// The bounds then allow neither more nor fewer machines than desired.
func BoundsOf(d *v1alpha1.MachineDeployment) (Bounds, error) {
	if d == nil {
		return Bounds{}, fmt.Errorf("%w: no deployment", errBounds)
	}
	b := Bounds{Desired: int64(max(0, d.Spec.Replicas))}
	u, manual, err := updateOf(d.Spec.Strategy)
	switch {
	case err != nil:
		return b, err
	case u == nil:
		b.Unavailable = b.Desired
		return b, nil
	}
	surge, err := resolve(u.MaxSurge, b.Desired, true)
	if err != nil {
		return b, fmt.Errorf("maxSurge: %w", err)
	}
	unavailable, err := resolve(u.MaxUnavailable, b.Desired, false)
	if err != nil {
		return b, fmt.Errorf("maxUnavailable: %w", err)
	}
	if manual {
		surge = 0
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	b.Surge, b.Unavailable = surge, min(unavailable, b.Desired)
	return b, nil
}

// updateOf returns the bounds of a strategy, nil for Recreate, and whether its orchestration is
// manual.
func updateOf(s v1alpha1.MachineDeploymentStrategy) (u *v1alpha1.UpdateConfiguration, manual bool, err error) {
	switch {
	case s.Type == v1alpha1.RecreateMachineDeploymentStrategyType:
		return nil, false, nil
	case s.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		return &s.RollingUpdate.UpdateConfiguration, false, nil
	case s.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		return &s.InPlaceUpdate.UpdateConfiguration, s.InPlaceUpdate.OrchestrationType == v1alpha1.OrchestrationTypeManual, nil
	default:
		return nil, false, fmt.Errorf("%w: %q", errBounds, s.Type)
	}
}

// resolve returns the number of machines that a bound means, at least 0 and at most what
// fits into an int32.
func resolve(v *intstr.IntOrString, desired int64, up bool) (int64, error) {
	if v == nil {
		return 0, fmt.Errorf("%w: missing", errBounds)
	}
	switch v.Type {
	case intstr.Int:
		return int64(max(0, v.IntVal)), nil
	case intstr.String:
		percent, err := strconv.ParseInt(strings.ReplaceAll(v.StrVal, "%", ""), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%w: %q", errBounds, v.StrVal)
		}
		product := max(0, percent) * desired
		if up {
			product += 99
		}
		return min(product/100, math.MaxInt32), nil
	default:
		return 0, fmt.Errorf("%w: type %d", errBounds, v.Type)
	}
}

// narrow cuts a number off at the limits of an int32.
func narrow(n int64) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}
