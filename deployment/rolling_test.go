// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDS14NegativeBoundsAreReadAsZeroAndRefused(t *testing.T) {
	d := rolling(3, -1, -2)
	b, err := deployment.BoundsOf(d)
	require.NoError(t, err)
	require.Equal(t, deployment.Bounds{Desired: 3, Surge: 0, Unavailable: 1}, b)
	dec := rollPlan(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 0, 0, 0))
	require.Equal(t, deployment.ReasonInvalid, dec.Reason)
	require.Empty(t, dec.Actions)
	require.Contains(t, dec.Holds[0].Message, `spec.strategy.rollingUpdate.maxSurge: Invalid value: "-1": must not be negative`)
	require.Contains(t, dec.Holds[0].Message, `spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "-2": must not be negative`)
}

func TestDS15ARolloutIsCompleteByWhatTheSetsSayNow(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	d.Status.Replicas, d.Status.UpdatedReplicas = 4, 1 // as stored by the last pass
	dec := rollPlan(d, rollSet(d, "c0", 0, 0, 0), rollSet(d, "c1", 3, 3, 3))
	require.Equal(t, deployment.ReasonComplete, dec.Reason)
	require.Equal(t, int32(3), dec.Status.UpdatedReplicas)
}

func TestACutNamesOnlySoManyMachines(t *testing.T) {
	d := rolling(1000, 0, 700)
	old, newSet := rollSet(d, "c0", 1000, 0, 0), rollSet(d, "c1", 0, 0, 0)
	in := rollSee(d, old, newSet)
	for i := range 1000 {
		in.Machines = append(in.Machines, rollMachine(old, fmt.Sprintf("m-%04d", i), v1alpha1.MachineRunning))
	}
	old.Status.Replicas, old.Status.AvailableReplicas = 1000, 1000
	dec := deployment.Decide(in, rollPolicy, rollNow)
	target, err := dec.Target(old.UID)
	require.NoError(t, err)
	require.Equal(t, int32(500), target.To)
	require.Len(t, target.Victims, machineset.MaxVictims)
	require.Contains(t, rollReasons(dec), machinist.Reason("BurstLimit"))

	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	dec = deployment.Decide(in, rollPolicy, rollNow)
	target, err = dec.Target(old.UID)
	require.NoError(t, err)
	require.Equal(t, int32(0), target.To, "nobody has to be named if all go")
	require.Len(t, target.Victims, 1000)
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok {
			require.Empty(t, machineset.Victims(a.Set))
		}
	}
}

func TestARolloutTellsWhatItWaitsFor(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 0, 0)
	newSet.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure, Status: v1alpha1.ConditionTrue, Message: "quota of objects\n" + strings.Repeat("é", 300)}}
	old.Spec.Replicas = 0
	old.Status.Replicas, old.Status.AvailableReplicas = 0, 0
	newSet.Spec.Replicas = 3
	dec := rollPlan(d, old, newSet)
	require.Len(t, dec.Holds, 1)
	require.Contains(t, dec.Holds[0].String(), "md-c1: WaitingForMachines: 0 machines exist, 3 are wanted: quota of objects éé")
	require.Less(t, len(dec.Holds[0].Message), 300)
}
