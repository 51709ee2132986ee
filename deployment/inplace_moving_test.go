// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestInPlaceMachinesThatMovedAndAreNotCountedYetLeaveNoRoomForOthers(t *testing.T) {
	s := newUpdScene(updDeployment(3, "1", "3", false), "c2", 3, 1)
	s.machine("new", "a", "Running")
	s.machine("new", "b", "moved")
	s.machine("old", "c", "done")
	s.machine("old", "d", "done")
	s.set("new").Status.Replicas = 1
	p := s.plan()
	require.Equal(t, []string{"c"}, p.moves, p.dec.String())
}

func TestInPlaceAMachineThatFailedAfterItsUpdateDoesNotMove(t *testing.T) {
	s := newUpdScene(updDeployment(2, "0", "1", false), "c2", 2, 0)
	s.machine("old", "a", "done")
	s.machine("old", "b", "done")
	s.is("a", v1alpha1.MachineFailed)
	p := s.plan()
	require.Equal(t, []string{"b"}, p.moves, p.dec.String())
}

func TestInPlaceAnUpdatedMachineOfTheNewSetIsWhereItBelongs(t *testing.T) {
	s := newUpdScene(updDeployment(2, "0", "1", false), "c2", 1, 1)
	s.machine("old", "a", "Running")
	s.machine("new", "b", "done")
	p := s.plan()
	require.Empty(t, p.moves)
	require.NotContains(t, p.dec.String(), "replacing it first")
}

func TestInPlaceNothingIsUpdatedForASetThatIsBeingDeleted(t *testing.T) {
	for _, paused := range []bool{false, true} {
		s := newUpdScene(updDeployment(3, "0", "2", false), "c2", 1, 1)
		s.machine("old", "a", "candidate")
		s.machine("new", "b", "Running")
		s.in.Deployment.Spec.Paused = paused
		s.set("new").DeletionTimestamp = deletedAt(1)
		p := s.plan()
		require.Empty(t, p.chosen)
		require.Equal(t, map[string]int32{"old": 1, "new": 1}, p.sizes, p.dec.String())
		if !paused {
			require.Contains(t, rollReasons(p.dec), deployment.ReasonSetDeleting)
		}
	}
}

// The new set has all machines, and there is room for one more.
func TestInPlaceAPreservedMachineGoesWithTheLastOfItsSetIfNoGateKeepsIt(t *testing.T) {
	for verdict, left := range map[deployment.Verdict]int32{deployment.Allow: 0, deployment.Deny: 1} {
		s := newUpdScene(updDeployment(1, "1", "0", false), "c2", 1, 1)
		s.machine("new", "a", "Running")
		s.machine("old", "b", "Running")
		s.in.Machines[1].Status.CurrentStatus = v1alpha1.CurrentStatus{
			Phase: v1alpha1.MachineFailed, PreserveExpiryTime: &metav1.Time{Time: time.Unix(2000, 0)},
		}
		s.set("old").Status.AvailableReplicas = 0
		gate := func(deployment.Choice) deployment.Answer { return deployment.Answer{Verdict: verdict} }
		dec := deployment.Plan(s.in, deployment.Policy{Gates: []deployment.Gate{gate}}, time.Unix(1000, 0))
		target, err := dec.Target("old")
		require.NoError(t, err)
		require.Equal(t, left, target.To, "%s: %s", verdict, dec)
	}
}

func TestTheOnlySetFollowsTheReplicasBeforeItHasReported(t *testing.T) {
	d := rolling(3, 1, 0)
	s := rollSet(d, "c1", 3, 3, 3)
	s.Generation, d.Spec.Replicas = 2, 1
	require.Equal(t, int32(1), rollPlan(d, s).Targets[0].To)
}

func TestANegativeSizeAsksForNothing(t *testing.T) {
	d := rolling(2, 0, 1)
	newSet := rollSet(d, "c1", 2, 0, 0)
	newSet.Spec.Replicas = -5
	require.Equal(t, int32(2), rollPlan(d, newSet).Targets[0].To)
}

func TestWhoGoesIsToldAlsoOfASetThatKeepsItsSize(t *testing.T) {
	d := rolling(2, 1, 0)
	require.Len(t, rollPlan(d, rollSet(d, "c1", 2, 3, 3)).Targets[0].Victims, 1)
}

func TestInPlaceMachinesThatTheNewSetIsAboutToCreateLeaveNoRoomForOthers(t *testing.T) {
	s := newUpdScene(updDeployment(3, "1", "3", false), "c2", 2, 2)
	s.machine("old", "a", "done")
	s.machine("old", "b", "done")
	p := s.plan()
	require.Equal(t, []string{"a"}, p.moves, p.dec.String())
}

func TestInPlaceAnUpdatedMachineThatCannotMoveYetHasItsPlace(t *testing.T) {
	s := newUpdScene(updDeployment(1, "1", "1", false), "c2", 2, 0)
	s.machine("old", "a", "done")
	s.machine("old", "b", "candidate")
	delete(s.set("old").Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	p := s.plan()
	require.Empty(t, p.moves)
	require.Empty(t, p.chosen, p.dec.String())
}

func TestInPlaceTheNewSetGrowsByAMachineOnlyWhenItHasSeenItCome(t *testing.T) {
	for reported, size := range map[int32]int32{1: 1, 2: 2, 3: 1} {
		s := newUpdScene(updDeployment(2, "0", "1", false), "c2", 0, 1)
		s.machine("new", "a", "Running")
		s.machine("new", "b", "moved")
		s.set("new").Status.Replicas = reported
		p := s.plan()
		require.Equal(t, size, p.sizes["new"], p.dec.String())
	}
}

func TestAMoveTakesAllLabelsOffByWhichTheFirstSetSelects(t *testing.T) {
	set := func(labels map[string]string) *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{Spec: v1alpha1.MachineSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w", "first": "1"}}}
	next := deployment.Move(m, set(m.Labels), set(map[string]string{"app": "w", "second": "2"}))
	require.Equal(t, map[string]string{"app": "w", "second": "2", v1alpha1.LabelKeyNodeUpdateResult: "successful"}, next.Labels)
}
