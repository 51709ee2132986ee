// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// denies is a gate that keeps the machines of these names.
func denies(names ...string) deployment.Gate {
	return func(c deployment.Choice) (bool, machinist.Hold) {
		if slices.Contains(names, c.Machine.Name) {
			return false, machinist.Hold{Reason: "Keep", Message: "it holds data"}
		}
		return true, machinist.Hold{}
	}
}

func TestRolling_Surge(t *testing.T)            { checkScenes(t) }
func TestRolling_MinimumAvailable(t *testing.T) { checkScenes(t) }
func TestRolling_Victims(t *testing.T)          { checkScenes(t) }
func TestRecreate(t *testing.T)                 { checkScenes(t) }
func TestScaling(t *testing.T)                  { checkScenes(t) }

// TestRolling_MachinesNotSeen has machines that exist and were not observed. Machines with an early
// priority are deleted before them.
func TestRolling_MachinesNotSeen(t *testing.T) { checkScenes(t) }

func TestRolling_NoCapacity(t *testing.T) {
	checkScenes(t)
	for name, change := range map[string]func(op *v1alpha1.LastOperation){
		"NoCapacity":        func(*v1alpha1.LastOperation) {},
		"another code":      func(op *v1alpha1.LastOperation) { op.ErrorCode = "Internal" },
		"another operation": func(op *v1alpha1.LastOperation) { op.Type = v1alpha1.MachineOperationHealthCheck },
		"another attempt":   func(op *v1alpha1.LastOperation) { op.State = v1alpha1.MachineStateProcessing },
	} {
		s := newScenario("rolling 3 +1; old 3/3/3; new 1/1/0: d.nocapacity")
		change(&s.of("d").Status.LastOperation)
		require.Equal(t, name == "NoCapacity", slices.Contains(reasons(s.decide()), machinist.Reason("NoCapacity")), name)
	}
}

// TestCreate_EveryStrategy_HasTheSurge asserts that a new set has the size that the bounds allow,
// for every strategy.
func TestCreate_EveryStrategy_HasTheSurge(t *testing.T) { checkScenes(t) }

func TestCut_ManyMachines_LimitedNames(t *testing.T) {
	d := rolling(1000, 0, 700)
	old, newSet := rollSet(d, "c0", 1000, 1000, 1000), rollSet(d, "c1", 0, 0, 0)
	in := deployment.Observation{Deployment: d, Sets: []*v1alpha1.MachineSet{old, newSet}, Complete: true, Proven: true}
	for i := range 1000 {
		in.Machines = append(in.Machines, rollMachine(old, fmt.Sprintf("m-%04d", i), v1alpha1.MachineRunning))
	}
	cut := func() deployment.Target {
		target, err := deployment.Decide(in, rollPolicy, rollNow).Target(old.UID)
		require.NoError(t, err)
		return target
	}
	require.Equal(t, int32(500), cut().To)
	require.Len(t, cut().Victims, members.MaxVictims)
	require.Contains(t, reasons(deployment.Decide(in, rollPolicy, rollNow)), machinist.Reason("BurstLimit"))

	d.Spec.Strategy = recreating(1000).Spec.Strategy
	require.Zero(t, cut().To, "none has to be named if all go")
	require.Len(t, cut().Victims, 1000)
	in.Machines = in.Machines[1:] // nor if one was not seen
	require.Zero(t, cut().To)
	for _, set := range writes[*v1alpha1.MachineSet](deployment.Decide(in, rollPolicy, rollNow)) {
		require.Empty(t, members.Victims(set))
	}
	_, err := deployment.Decide(in, rollPolicy, rollNow).Target("other")
	require.ErrorContains(t, err, "no target for the set with UID ")
}

// TestCut_NamesDoNotFit_SetKeepsSize has a set whose annotations are full.
func TestCut_NamesDoNotFit_SetKeepsSize(t *testing.T) {
	s := newScenario("rolling 3 +1 revision=2; old 2/4/4; new 2/2/2")
	s.in.Sets[0].Annotations["large"] = strings.Repeat("x", 1<<18)
	text, dec := s.result()
	require.Contains(t, text, "old 2 ", "of the 3 machines that go none could be named")
	require.Contains(t, dec.String(), "no more machines can be named for deletion")
}

func TestHolds_SetCannotCreate_ShortMessage(t *testing.T) {
	s := newScenario("rolling 3 +1; old 0; new 3/0/0")
	s.in.Sets[1].Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure, Status: v1alpha1.ConditionTrue, Message: "quota of objects\n" + strings.Repeat("é", 300)}}
	dec := s.decide()
	require.Len(t, dec.Holds, 1)
	require.Contains(t, dec.Holds[0].String(), "new: WaitingForMachines: 0 machines, 3 wanted: quota of objects éé")
	require.Less(t, len(dec.Holds[0].Message), 300)
}

// TestDecide_MinReadySecondsLeft_ChecksThen has a machine of the old set, so that
// no hold has the time.
func TestDecide_MinReadySecondsLeft_ChecksThen(t *testing.T) {
	for ready, check := range map[string]time.Time{"90": rollNow.Add(30 * time.Second), "30": {}} {
		dec := newScenario("rolling 3 +1 revision=2 ready=" + ready + "; old 3: a.young b c; new 1/1/0").decide()
		require.Empty(t, dec.Actions, dec.String())
		require.Equal(t, check, dec.NextCheck, dec.String())
	}
}

func TestGate_Refusals_AskedOnceAndCounted(t *testing.T) {
	s := newScenario("rolling 50 +5 revision=2; old 50/50/50; new 5/5/5")
	asked, until := map[string]int{}, map[string]time.Time{"old-7": rollNow.Add(time.Minute), "old-8": rollNow.Add(time.Hour)}
	s.policy.Gates = []deployment.Gate{func(c deployment.Choice) (bool, machinist.Hold) {
		asked[c.Machine.Name]++
		return c.Machine.Name == "old-9", machinist.Hold{Until: until[c.Machine.Name]}
	}}
	text, dec := s.result()
	require.Equal(t, "old 50>49 without old-9; new 5; names old[old-9]", text, "the only one that is allowed")
	require.Len(t, asked, 50)
	for name, n := range asked {
		require.Equal(t, 1, n, name)
	}
	gates := slices.DeleteFunc(dec.Holds, func(h machinist.Hold) bool { return h.Reason != machinist.Reason("Gate") })
	require.Len(t, gates, 21)
	require.Equal(t, machinist.Hold{Subject: "machinedeployment/md", Reason: machinist.Reason("Gate"), Message: "gates keep 29 more machines", Until: until["old-7"]}, gates[20])
	s = newScenario("rolling 3 +1 revision=2; old 3/3/3; new 1/1/1")
	s.policy.Gates = []deployment.Gate{func(deployment.Choice) (bool, machinist.Hold) {
		return false, machinist.Hold{Until: rollNow.Add(time.Minute)}
	}}
	require.Equal(t, rollNow.Add(time.Minute), s.decide().NextCheck)
}

// TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne has scale-downs that are shared among
// sets (kubernetes#119536).
func TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne(t *testing.T) { checkScenes(t) }

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
				state := chosen(chance{r}, "", "", ".unknown", ".pending", ".nocapacity")
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
