// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Limits are the bounds of a deployment. No field is negative, and Unavailable is at most Desired.
type Limits struct{ Desired, Surge, Unavailable int64 }

// Most returns the maximum number of machines.
func (l Limits) Most() int64 { return l.Desired + l.Surge }

// Least returns the minimum number of available machines.
func (l Limits) Least() int64 { return l.Desired - l.Unavailable }

// LimitsOf returns the limits of a deployment, as documented at deployment.BoundsOf.
func LimitsOf(d *v1alpha1.MachineDeployment) (Limits, error) {
	if d == nil {
		return Limits{}, fmt.Errorf("%w: no deployment", errBounds)
	}
	b := Limits{Desired: int64(max(0, d.Spec.Replicas))}
	u, manual, err := UpdateOf(d.Spec.Strategy)
	switch {
	case err != nil:
		return b, err
	case u == nil:
		b.Unavailable = b.Desired
		return b, nil
	}
	surge, err := Resolve(u.MaxSurge, b.Desired, true)
	if err != nil {
		return b, fmt.Errorf("maxSurge: %w", err)
	}
	unavailable, err := Resolve(u.MaxUnavailable, b.Desired, false)
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

// errBounds is wrapped by the errors of [LimitsOf].
var errBounds = errors.New("strategy without usable bounds")

// UpdateOf returns the bounds of a strategy, nil for Recreate, and whether its orchestration is
// manual.
func UpdateOf(s v1alpha1.MachineDeploymentStrategy) (u *v1alpha1.UpdateConfiguration, manual bool, err error) {
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

// Resolve returns the number of machines that a bound means, at least 0 and at most what
// fits into an int32.
func Resolve(v *intstr.IntOrString, desired int64, up bool) (int64, error) {
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

// Narrow cuts a number off at the limits of an int32.
func Narrow(n int64) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}
