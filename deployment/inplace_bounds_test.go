// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// What a deployment says that may exist is what Plan creates, for every strategy.
func TestMaxSurge_EveryStrategy_IsWhatPlanCreatesBeyondTheReplicas(t *testing.T) {
	for _, strategy := range []struct {
		kind          v1alpha1.MachineDeploymentStrategyType
		orchestration v1alpha1.OrchestrationType
		surge         int32
	}{
		{v1alpha1.RollingUpdateMachineDeploymentStrategyType, "", 3},
		{v1alpha1.InPlaceUpdateMachineDeploymentStrategyType, v1alpha1.OrchestrationTypeAuto, 3},
		{v1alpha1.InPlaceUpdateMachineDeploymentStrategyType, v1alpha1.OrchestrationTypeManual, 0},
		{v1alpha1.RecreateMachineDeploymentStrategyType, "", 0},
	} {
		t.Run(fmt.Sprint(strategy.kind, strategy.orchestration), func(t *testing.T) {
			d := rollDeployment(5, strategy.kind, intstr.FromInt32(3), intstr.FromInt32(0))
			if in := d.Spec.Strategy.InPlaceUpdate; in != nil {
				in.OrchestrationType = strategy.orchestration
			}
			require.Equal(t, strategy.surge, deployment.MaxSurge(d))
			b, err := deployment.BoundsOf(d)
			require.NoError(t, err)
			require.EqualValues(t, strategy.surge, b.Surge)

			created := int32(0)
			for _, a := range rollPlan(d, rollSet(d, "c0", 5, 5, 5)).Actions {
				if create, ok := a.(deployment.CreateSet); ok {
					created = create.Set.Spec.Replicas
				}
			}
			require.Equal(t, strategy.surge, created)
		})
	}
}
