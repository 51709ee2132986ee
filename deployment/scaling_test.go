// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	kindRolling  = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	kindRecreate = v1alpha1.RecreateMachineDeploymentStrategyType
	kindInPlace  = v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
)

func TestI6EverySetHasATarget(t *testing.T) {
	d := rolling(5, 1, 0)
	var sets []*v1alpha1.MachineSet
	for i := range int32(6) {
		s := rollSet(d, fmt.Sprint("o", i), i%3, i%3, i%2)
		sets = append(sets, s)
	}
	sets = append(sets, rollSet(d, "c1", 1, 1, 1))
	for _, change := range []func(){
		func() {},
		func() { d.Spec.Paused = true },
		func() { d.Spec.Replicas = 2 },
		func() { d.Spec.Paused, d.Spec.RollbackTo = false, &v1alpha1.RollbackConfig{Revision: 1} },
		func() { d.Spec.RollbackTo, d.Spec.Strategy.Type = nil, kindRecreate },
		func() { d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"} },
	} {
		change()
		dec := rollPlan(d, sets...)
		require.Len(t, dec.Targets, len(sets))
		for _, s := range sets {
			target, err := dec.Target(s.UID)
			require.NoError(t, err)
			require.Equal(t, s.Spec.Replicas, target.From)
		}
	}
	_, err := rollPlan(d, sets...).Target("other")
	require.ErrorIs(t, err, deployment.ErrNoTarget)
}

func TestScalingOf_CutWhoseRoundingWouldGrowASet_ShrinksOthersAndArrives(t *testing.T) {
	d := rolling(4, 1, 0)
	old, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "c1", 4, 4, 3)
	for _, s := range []*v1alpha1.MachineSet{old, newSet} {
		s.Annotations[v1alpha1.MaxReplicasAnnotation] = map[string]string{"md-c0": "4", "md-c1": "5"}[s.Name]
	}
	got := map[string]int32{}
	for _, x := range deployment.ScalingOf(d, newSet, []*v1alpha1.MachineSet{old}).Targets {
		got[x.Name] = x.To
	}
	require.Equal(t, map[string]int32{"md-c0": 2, "md-c1": 3}, got)
	require.Equal(t, int32(-5), deployment.Share{Size: 9, Desired: 4, ToAdd: -5}.Change(), "no former total")
	require.Equal(t, int32(5-math.MaxInt32), deployment.Share{Size: math.MaxInt32, Desired: 5, Max: math.MaxInt32, ToAdd: math.MinInt32}.Change())
}
