// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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
	l, err := rollout.LimitsOf(d)
	return Bounds(l), err
}
