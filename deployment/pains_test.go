// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Two bounds that are zero, or come out as zero, would never let an update move:
// one machine may be unavailable then, whatever the strategy.
func TestR4BoundsThatAreBothZeroLeaveRoomForOne(t *testing.T) {
	zeros := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("0%"), intstr.FromString("0")}
	for _, surge := range zeros {
		for _, unavailable := range append(zeros, intstr.FromString("9%")) { // of 10, rounded down
			for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindInPlace} {
				b, err := deployment.BoundsOf(rollDeployment(10, kind, surge, unavailable))
				require.NoError(t, err)
				require.Equal(t, deployment.Bounds{Desired: 10, Unavailable: 1}, b, "%s: %s, %s", kind, surge.String(), unavailable.String())
			}
		}
	}
}

// A strategy without its parameters, or none, is an error and never a panic, and
// leaves no room.
func TestR4AStrategyWithoutParametersIsAnError(t *testing.T) {
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindInPlace, "", "Other"} {
		d := rollDeployment(3, kind, intstr.FromInt32(1), intstr.FromInt32(1))
		d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: kind}
		b, err := deployment.BoundsOf(d)
		require.Error(t, err, "%q", kind)
		require.Equal(t, deployment.Bounds{Desired: 3}, b)
		require.Zero(t, deployment.MaxSurge(d))
		require.Zero(t, deployment.MaxUnavailable(d))
		require.NotEmpty(t, deployment.Validate(d))
		dec := rollPlan(d, rollSet(d, "c0", 3, 3, 3))
		require.Empty(t, rollLines(dec))
		require.NotEmpty(t, dec.Holds)
	}
}

func TestR4FewerReplicasThanNoneAreNone(t *testing.T) {
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindRecreate, kindInPlace} {
		b, err := deployment.BoundsOf(rollDeployment(-3, kind, intstr.FromString("50%"), intstr.FromInt32(0)))
		require.NoError(t, err)
		require.Zero(t, b, "%s", kind)
	}
}
