// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestARecreateBeginsWithNothingBeforeTheOldSetsHaveReported(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	old := rollSet(d, "c0", 0, 0, 0)
	require.Len(t, rollLines(rollPlan(d, old)), 1, "the new set is created")
	old.Generation = 2
	dec := rollPlan(d, old)
	require.Empty(t, rollLines(dec))
	require.Contains(t, rollReasons(dec), deployment.ReasonSetNotReported)
}
