// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// early lets machines go before those that nobody has seen, should these exist.
func early(machines ...*v1alpha1.Machine) {
	for _, m := range machines {
		m.Annotations = map[string]string{v1alpha1.MachinePriority: "1"}
	}
}

// sizeAfter returns the size of a set after a plan.
func sizeAfter(t *testing.T, in deployment.Observation, p deployment.Policy, s *v1alpha1.MachineSet) int32 {
	t.Helper()
	target, err := deployment.Decide(in, p, rollNow).Target(s.UID)
	require.NoError(t, err)
	return target.To
}

func TestASetThatHasNotReportedIsCutOnlyIfEnoughMachinesAreAvailable(t *testing.T) {
	for unavailable, left := range map[int32]int32{2: 2, 1: 3} {
		d := rolling(2, 0, unavailable)
		s := rollSet(d, "c1", 3, 2, 0)
		s.Generation = 2
		require.Equal(t, left, sizeAfter(t, rollSee(d, s), rollPolicy, s), "%d may be unavailable", unavailable)
	}
}

func TestNoMachineThatWasSeenIsChosenBeforeAllThatWereNotSeenAreGivenUp(t *testing.T) {
	for first, left := range map[bool]int32{false: 1, true: 3} {
		d := rolling(1, 1, 0)
		s := rollSet(d, "c1", 3, 2, 1)
		in := rollSee(d, s)
		if first {
			early(in.Machines[0])
		}
		require.Equal(t, left, sizeAfter(t, in, rollPolicy, s), "the one that is available goes before one that was not seen: %v", first)
	}
}

func TestNobodyHasToBeNamedIfAllThatWereSeenGoTogetherWithOthers(t *testing.T) {
	d := rolling(0, 0, 0)
	s := rollSet(d, "c1", machineset.MaxVictims+2, 0, 0)
	in := rollSee(d, s)
	for i := range machineset.MaxVictims + 1 {
		in.Machines = append(in.Machines, rollMachine(s, fmt.Sprintf("m-%04d", i), v1alpha1.MachineRunning))
	}
	s.Status.Replicas, s.Status.AvailableReplicas = machineset.MaxVictims+1, machineset.MaxVictims+1
	require.Zero(t, sizeAfter(t, in, rollPolicy, s))
}

// The set creates nothing. It asks for two machines more than were seen, of which
// one exists.
func TestOnlyOneMachineIsLostForOneThatWasNotSeen(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 4, 3, 3), rollSet(d, "c1", 3, 3, 3)
	old.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	in := rollSee(d, old, newSet)
	in.Machines = append(in.Machines[:2], in.Machines[3:]...)
	early(in.Machines[:2]...)
	require.Equal(t, int32(1), sizeAfter(t, in, rollPolicy, old))
}

func TestNoMachineIsLostForOneThatWasNotSeenIfThatOneIsNotGivenUp(t *testing.T) {
	d := rolling(1, 0, 1)
	old, newSet := rollSet(d, "c0", 2, 3, 2), rollSet(d, "c1", 0, 0, 0)
	in := rollSee(d, old, newSet)
	in.Machines = in.Machines[:2]
	early(in.Machines[1])
	require.Equal(t, int32(1), sizeAfter(t, in, rollPolicy, old))
}

func TestTheOnlySetGivesUpMachinesThatWereNotSeenWhateverIsAvailable(t *testing.T) {
	d := rolling(3, 1, 0)
	s := rollSet(d, "c1", 3, 1, 1)
	d.Spec.Replicas = 2
	in := rollSee(d, s)
	early(in.Machines[0])
	require.Equal(t, int32(2), sizeAfter(t, in, rollPolicy, s))
}

func TestGatesAreNotAskedAboutMachinesThatMayGoForOneThatIsNotWanted(t *testing.T) {
	d := rolling(1, 1, 0)
	s := rollSet(d, "c1", 2, 1, 0)
	in := rollSee(d, s)
	early(in.Machines[0])
	policy := rollPolicy
	policy.Gates = []deployment.Gate{denies(in.Machines[0].Name)}
	require.Equal(t, int32(1), sizeAfter(t, in, policy, s))
}

// The first cut of a pass, which costs nothing, and the second one share them.
func TestAMachineThatMayGoForOneThatWasNotSeenDoesSoForOneAlone(t *testing.T) {
	d := rolling(3, 3, 0)
	old, newSet := rollSet(d, "c0", 4, 2, 2), rollSet(d, "c1", 3, 3, 3)
	in := rollSee(d, old, newSet)
	early(in.Machines[:2]...)
	policy := rollPolicy
	policy.Gates = []deployment.Gate{denies(in.Machines[1].Name)}
	require.Equal(t, int32(3), sizeAfter(t, in, policy, old), "the second is kept")
}

func TestASetThatCreatesNothingHasNoMachinesThatWereNotSeen(t *testing.T) {
	for idle, left := range map[bool]int32{true: 0, false: 1} {
		d := rolling(1, 0, 1)
		old, newSet := rollSet(d, "c0", 4, 1, 1), rollSet(d, "c1", 0, 0, 0)
		if idle {
			old.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		}
		in := rollSee(d, old, newSet)
		early(in.Machines[0])
		require.Equal(t, left, sizeAfter(t, in, rollPolicy, old), "it creates nothing: %v", idle)
	}
}

func TestAMachineThatIsLeavingIsReplacedByOneThatWasNotSeen(t *testing.T) {
	for leaving, left := range map[bool]int32{true: 3, false: 2} {
		d := rolling(2, 2, 1)
		old, newSet := rollSet(d, "c0", 4, 3, 2), rollSet(d, "c1", 0, 0, 0)
		in := rollSee(d, old, newSet)
		early(in.Machines[:2]...)
		if leaving {
			in.Machines[2].DeletionTimestamp = new(metav1.NewTime(rollNow.Add(-time.Minute)))
		}
		require.Equal(t, left, sizeAfter(t, in, rollPolicy, old), "the third is leaving: %v", leaving)
	}
}

// Four machines exist, of which three were seen. The second is named to go. If the
// set gets smaller by two, it lets the first one go as well, the only one that is available.
func TestAMachineThatGoesAnywayDoesNotGoForOneThatWasNotSeen(t *testing.T) {
	d := rolling(2, 0, 1)
	d.Annotations = map[string]string{
		v1alpha1.TriggerDeletionByMCM:                    "md-c1-01~2026-03-01T11:00:00Z",
		v1alpha1.LastDeploymentReplicaChangeByScalerTime: "2026-03-01T11:30:00Z",
	}
	s := rollSet(d, "c1", 4, 4, 1)
	in := rollSee(d, s)
	in.Machines = in.Machines[:3]
	early(in.Machines[:2]...)
	require.Equal(t, int32(4), sizeAfter(t, in, rollPolicy, s), "1 is available, and 1 has to be")
}
