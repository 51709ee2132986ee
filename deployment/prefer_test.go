// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne has scale-downs that are shared among
// sets (kubernetes#119536).
func TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne(t *testing.T) {
	check(t, []scenarioCase{
		{"paused: the unknown one of a small set", "rolling 4 +0 -1 paused; older 3/3/3 sized=5: a b c; old 1/1/0 sized=5: d.unknown; new 1/1/1 sized=5: e", "older 3; old 1>0 without d; new 1", ""},
		{"paused: the pending one of the new set", "rolling 1 +0 -1 paused; old 1/1/1 sized=2: a; new 1/1/0 sized=2: b.pending", "old 1; new 1>0 without b", ""},
		{"not paused: the unknown one", "rolling 4 +0 -1; older 3/3/3 sized=5: a b c; old 1/1/0 sized=5: d.unknown; new 1/1/1 sized=5: e", "older 3; old 1>0 without d; new 1", ""},
		{"not paused: one that joins stays", "rolling 4 +0 -2; old 4/4/4 sized=5: a b c d; new 1/1/0 sized=5: e.pending", "old 4>3 without a; new 1; names old[a]", ""},
		{"a preserved one stays", "rolling 4 +0 -1 paused; older 3/3/3 sized=5: a b c; old 1/1/0 sized=5: d.preserved; new 1/1/1 sized=5: e", "older 3>2 without a; old 1; new 1; names older[a]", ""},
		{"each set gives its own first", "rolling 2 +0 -2 paused; older 3/3/1 sized=4: a b.unknown c.unknown; new 1/1/1 sized=4: d", "older 3>1 without b c; new 1; names older[b c]", ""},
		{"in place: one of a younger set", "inplace 3 +0 -1 paused; older 2/2/2: a b; old 2/2/1: c.unknown d; new 0", "older 2; old 2>1 without c; new 0; names old[c]", ""},
	})
}

// TestScale_PriorityBeforeHealth_AsFromASetAlone asserts one order: a machine that a user marks goes
// before an unhealthy one, through a deployment and from a set alone.
func TestScale_PriorityBeforeHealth_AsFromASetAlone(t *testing.T) {
	for name, c := range map[string]struct{ machines, want, by string }{
		"marked and unhealthy":            {"a.early b bad.unknown", "a", "Priority"},
		"unhealthy":                       {"a b bad.unknown", "bad", "Availability"},
		"unhealthy and marked":            {"a b bad.unknown.early", "bad", "Priority"},
		"marked, and preserved unhealthy": {"a.early b bad.preserved", "a", "Priority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("rolling 2 +1 -0 want=old; old 3/3/2 sized=3: " + c.machines)
			d := s.decide()
			require.Len(t, d.Targets[0].Victims, 1)
			require.Equal(t, c.want, d.Targets[0].Victims[0].Machine.Name)
			require.Equal(t, c.by, d.Targets[0].Victims[0].By)

			alone := s.in.Sets[0].DeepCopy()
			alone.Spec.Replicas, alone.OwnerReferences = 2, nil
			in := machineset.Observation{Set: alone, Machines: s.in.Machines, Complete: true, Proven: true}
			var deleted []string
			for _, a := range machineset.Decide(in, machineset.Policy{}, rollNow).Actions {
				if a, ok := a.(machinist.Delete); ok {
					deleted = append(deleted, a.Object.GetName())
				}
			}
			require.Equal(t, []string{c.want}, deleted)
		})
	}
}

// TestScale_CustomOrder_IsThatOfTheSets asserts that a policy without a criterion for the health has
// the same order for deployments.
func TestScale_CustomOrder_IsThatOfTheSets(t *testing.T) {
	s := newScenario("rolling 2 +1 -0 want=old; old 3/3/2 sized=3: a b bad.unknown")
	s.policy.Order = machineset.Order{{Name: "FirstOfTheAlphabet", Rank: func(m *v1alpha1.Machine) int64 { return int64(m.Name[0]) }}}
	victims := s.decide().Targets[0].Victims
	require.Len(t, victims, 1)
	require.Equal(t, "a", victims[0].Machine.Name)
}

// TestScale_RandomPausedSets_NoAvailableBeforeAnUnavailable plays random scale-downs of paused rollouts.
func TestScale_RandomPausedSets_NoAvailableBeforeAnUnavailable(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 31))
		all, names := 0, []string{"oldest", "older", "old", "new"}
		var sets []string
		for _, set := range names[r.IntN(3):] {
			var machines []string
			up, n := 0, r.IntN(5)
			for i := range n {
				state := pickOne(r, "", "", ".unknown", ".pending", ".nocapacity")
				if state == "" {
					up++
				}
				machines = append(machines, fmt.Sprint(set, i, state))
			}
			all += n
			sets = append(sets, fmt.Sprintf("%s %d/%d/%d sized=SIZE: %s", set, n, n, up, strings.Join(machines, " ")))
		}
		text := fmt.Sprintf("rolling %d +%d -%d paused; %s", r.IntN(all+1), r.IntN(2), r.IntN(4), strings.Join(sets, "; "))
		s := newScenario(strings.ReplaceAll(text, "SIZE", fmt.Sprint(all)))
		lost, available := map[string]bool{}, ""
		for _, target := range s.decide().Targets {
			for _, v := range target.Victims {
				lost[v.Machine.Name] = true
				if v.Machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
					available = v.Machine.Name
				}
			}
		}
		if available == "" {
			continue
		}
		cuts++
		for _, m := range s.in.Machines {
			require.True(t, lost[m.Name] || m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning,
				"seed %d: %s goes, and the unavailable %s stays: %s", seed, available, m.Name, s.text)
		}
	}
	require.Greater(t, cuts, 500)
}

func pickOne[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
