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

func TestAMachineThatIsLeavingHasItsPlaceBesideTheOneThatReplacesIt(t *testing.T) {
	for leaving, size := range map[bool]int32{false: 3, true: 2} {
		d := rolling(3, 0, 3)
		s := rollSet(d, "c1", 1, 1, 1)
		in := rollSee(d, s)
		if leaving {
			in.Machines[0].DeletionTimestamp = new(metav1.NewTime(rollNow.Add(-time.Minute)))
		}
		require.Equal(t, size, sizeAfter(t, in, rollPolicy, s), "it is leaving: %v", leaving)
	}
}

func TestPreservedMachinesStayUntilAllSetsHaveReported(t *testing.T) {
	d := rolling(3, 1, 0)
	kept, empty, newSet := rollSet(d, "c0", 1, 1, 0), rollSet(d, "cx", 0, 0, 0), rollSet(d, "c1", 3, 3, 3)
	in := rollSee(d, kept, empty, newSet)
	in.Machines[0].Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineFailed, PreserveExpiryTime: new(metav1.NewTime(rollNow.Add(time.Hour)))}
	require.Zero(t, sizeAfter(t, in, rollPolicy, kept))
	empty.Generation = 2
	require.Equal(t, int32(1), sizeAfter(t, in, rollPolicy, kept))
}

// The strategy was another a moment ago: the new set has a machine more than it asks
// for, as one has moved to it.
func TestAMachineMoreThanASetAsksForIsNoReasonToCutOthersByOneMore(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 3, 3, 1), rollSet(d, "c1", 1, 2, 2)
	in := rollSee(d, old, newSet)
	in.Machines[4].Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
	require.Equal(t, int32(2), sizeAfter(t, in, rollPolicy, old))
}

// The only machine of a set may go for one that was not seen, and is not reported
// as available anyway.
func TestASetThatIsSureOfNothingTakesNothingFromOthers(t *testing.T) {
	d := rolling(2, 1, 0)
	old, unsure, newSet := rollSet(d, "c0", 1, 1, 1), rollSet(d, "cx", 1, 1, 1), rollSet(d, "c1", 2, 2, 2)
	in := rollSee(d, old, unsure, newSet)
	unsure.Status.Replicas, unsure.Status.AvailableReplicas = 2, 0
	early(in.Machines[1])
	require.Zero(t, sizeAfter(t, in, rollPolicy, old))
}

// The machine is of the old set, so that no hold tells when.
func TestADecisionIsMadeAgainWhenAMachineHasBeenAvailableForLongEnough(t *testing.T) {
	for since, check := range map[time.Duration]time.Time{20 * time.Second: rollNow.Add(40 * time.Second), time.Hour: {}} {
		d := rolling(3, 1, 0)
		d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
		d.Spec.MinReadySeconds = 60
		in := rollSee(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 0))
		in.Machines[0].Status.CurrentStatus.LastUpdateTime = metav1.NewTime(rollNow.Add(-since))
		dec := deployment.Plan(in, rollPolicy, rollNow)
		require.Empty(t, dec.Actions, dec.String())
		require.Equal(t, check, dec.NextCheck, dec.String())
	}
}

func TestInPlaceASetThatHasNotReportedOnItsSizeIsNotTakenToSeeItsMachines(t *testing.T) {
	for generation, left := range map[int64]int32{1: 0, 2: 1} {
		s := newUpdScene(updDeployment(1, "0", "0", false), "c2", 1, 0)
		s.set("old").Generation, s.set("old").Status.ObservedGeneration = generation, 1
		require.Equal(t, left, s.plan().sizes["old"], "generation %d", generation)
	}
}

func TestInPlaceASetThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	s := newUpdScene(updDeployment(2, "0", "1", false), "c2", 1, 0)
	s.machine("old", "a", "Running")
	delete(s.set("old").Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	s.set("old").DeletionTimestamp = deletedAt(900)
	p := s.plan()
	if n := p.written("a"); n != nil {
		require.NotContains(t, n.Labels, v1alpha1.LabelKeyNodeCandidateForUpdate, "its machines are not updated: %s", p.dec)
	}
	for _, a := range p.dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok {
			require.NotEqual(t, "old", a.Set.Name, "it is not kept from growing: %s", p.dec)
		}
	}
}
