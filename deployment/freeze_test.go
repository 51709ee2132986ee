// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var frozenSince = rollNow.Add(-time.Minute)

// freeze begins a freeze in a scene.
func freeze(s *scenario) {
	s.in.Freeze = machine.Freeze{Frozen: true, Since: frozenSince, Message: "the target API server does not answer"}
}

func TestFreeze_RolloutAndScaleUp_AreHeld(t *testing.T) {
	for _, text := range []string{
		"rolling 3 +1 -1 revision=1; old 3/3/3: a b c; new 0",
		"rolling 3 +1 -1 revision=1; old 3/3/3: a b c",
		"rolling 3 +1 -0 revision=1; old 2/2/2: a b; new 2/2/2: c d",
		"rolling 5 +1 revision=1; new 3/3/3: a b c",
		"recreate 3 revision=1; old 3/3/3: a b c; new 0",
	} {
		s := newScenario(text)
		require.NotEmpty(t, s.decide().Actions, "without a freeze something changes: %s", text)
		freeze(s)
		d := s.decide()
		for _, target := range d.Targets {
			require.Equal(t, target.From, target.To, text)
		}
		require.Empty(t, creates(d), text)
		require.Equal(t, deployment.ReasonFrozen, d.Reason, text)
		require.Contains(t, d.Holds, s.in.Freeze.Hold(rollNow))
		require.False(t, d.NextCheck.IsZero() || d.NextCheck.After(rollNow.Add(time.Minute)), text)
	}
}

func TestFreeze_ScaleDown_Continues(t *testing.T) {
	s := newScenario("rolling 1 +1 revision=1; new 3/3/3: a b c")
	freeze(s)
	d := s.decide()
	require.Len(t, d.Targets, 1)
	require.Equal(t, int32(1), d.Targets[0].To)
}

func TestFreeze_BeginAndEnd_HaveConditionAndEvent(t *testing.T) {
	s := completed()
	freeze(s)
	d := s.decide()
	require.True(t, d.WriteStatus)
	require.Len(t, d.Events, 1)
	require.Equal(t, machinist.Reason("ControllerFrozen"), d.Events[0].Reason)
	cond := deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentControllerFrozen)
	require.Equal(t, v1alpha1.ConditionTrue, cond.Status)
	require.Equal(t, v1alpha1.APIServerUnreachable, cond.Reason)
	require.Contains(t, cond.Message, "the target API server does not answer")
	require.True(t, cond.LastTransitionTime.Time.Equal(frozenSince), "it says since when")

	s.in.Deployment.Status = d.Status
	d = s.decide()
	require.False(t, d.WriteStatus, "it is said once")
	require.Empty(t, d.Events)

	s.in.Freeze = machine.Freeze{ClocksFrom: rollNow}
	d = s.decide()
	require.True(t, d.WriteStatus)
	require.Len(t, d.Events, 1)
	require.Equal(t, machinist.Reason("ControllerUnfrozen"), d.Events[0].Reason)
	require.Nil(t, deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentControllerFrozen))
	require.Equal(t, deployment.ReasonComplete, d.Reason)
}
