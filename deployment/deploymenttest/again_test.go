// SPDX-License-Identifier: Apache-2.0

package deploymenttest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestWorld_OnlyStatusStored_SameDecisionAgain asserts that the world spares the decision
// after one that has only stored a status.
func TestWorld_OnlyStatusStored_SameDecisionAgain(t *testing.T) {
	for name, d := range played() {
		t.Run(name, func(t *testing.T) {
			var w *deploymenttest.World
			spared := 0
			m := deploymenttest.Model{Join: slow}
			m.OnDecision = func(in deployment.Observation, d deployment.Decision) {
				if w == nil || !d.WriteStatus || len(d.Actions) > 0 || slices.ContainsFunc(d.Holds, timed) {
					return
				}
				next := *in.Deployment
				next.Status = d.Status
				in.Deployment = &next
				again := deployment.Decide(in, m.Policy, w.Now())
				require.False(t, again.WriteStatus)
				d.WriteStatus, d.Events = false, nil
				require.Equal(t, d, again)
				spared++
			}
			w = settled(t, d, m)
			require.NoError(t, w.Edit(class("large")))
			w.Run(3 * time.Minute)
			require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas++ }))
			complete(t, w)
			require.Positive(t, spared)
		})
	}
}

func TestWorld_StatusStored_NoDecisionAgain(t *testing.T) {
	var w *deploymenttest.World
	var stored []*v1alpha1.Machine // seen by the last decision, if that has only stored a status
	m := deploymenttest.Model{}
	m.OnDecision = func(in deployment.Observation, d deployment.Decision) {
		if w == nil {
			return
		}
		seen := slices.Clone(in.Machines)
		require.False(t, stored != nil && slices.Equal(stored, seen), "at %s", w.Now())
		if stored = nil; len(d.Actions) == 0 && d.WriteStatus {
			stored = seen
		}
	}
	w = settled(t, ofThree(), m)
	require.NoError(t, w.Edit(class("large")))
	complete(t, w)
}

func TestWorld_Sizes_MatchMachines(t *testing.T) {
	for name, d := range played() {
		t.Run(name, func(t *testing.T) {
			w := settled(t, d, deploymenttest.Model{Join: slow})
			require.NoError(t, w.Edit(class("large")))
			for range 40 {
				f, moving := w.Step()
				if !moving {
					return
				}
				require.Empty(t, cmp.Diff(counted(w), f.Sizes))
				w.Wait(31 * time.Second)
				require.Empty(t, cmp.Diff(counted(w), w.Sizes()), "half a minute later")
				for _, m := range w.Machines()[:min(1, len(w.Machines()))] {
					require.NoError(t, w.Vanish(m.Name))
				}
				require.Empty(t, cmp.Diff(counted(w), w.Sizes()), "without one machine")
				require.NoError(t, w.EditSet(w.Sets()[0].Name, func(s *v1alpha1.MachineSet) { s.Spec.Template.Spec.Class.Name += "x" }))
				require.Empty(t, cmp.Diff(counted(w), w.Sizes()), "with another set")
			}
		})
	}
}

// played are deployments of three machines.
func played() map[string]*v1alpha1.MachineDeployment {
	settling, recreated, inPlace := ofThree(), ofThree(), ofThree()
	settling.Spec.MinReadySeconds = 30
	recreated.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	inPlace.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
		Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: ofThree().Spec.Strategy.RollingUpdate.UpdateConfiguration, OrchestrationType: v1alpha1.OrchestrationTypeAuto,
		},
	}
	return map[string]*v1alpha1.MachineDeployment{"rolling": ofThree(), "settling": settling, "recreated": recreated, "in place": inPlace}
}

// slow has machines join at different times.
func slow(m *v1alpha1.Machine) (time.Duration, bool) {
	return time.Duration(m.Name[len(m.Name)-1]-'0'+1) * 10 * time.Second, true
}

func timed(h machinist.Hold) bool { return !h.Until.IsZero() }

// counted is what sizes have to be.
func counted(w *deploymenttest.World) []deploymenttest.Size {
	newSet, _ := deployment.FindSets(w.Deployment(), w.Sets())
	var sizes []deploymenttest.Size
	for _, s := range w.Sets() {
		machines, phases := w.MachinesOf(s), map[v1alpha1.MachinePhase]int{}
		for _, m := range machines {
			if members.Leaving(m) {
				phases[v1alpha1.MachineTerminating]++
			} else {
				phases[m.Status.CurrentStatus.Phase]++
			}
		}
		sizes = append(sizes, deploymenttest.Size{
			Name: s.Name, Class: s.Spec.Template.Spec.Class.Name, New: s == newSet, Spec: s.Spec.Replicas,
			Counts: members.Count(s, machines, nil, w.Now()), Phases: phases,
		})
	}
	return sizes
}
