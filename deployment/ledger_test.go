// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestTheMachinesOfASetThatHasNotReportedAreNotCountedOn(t *testing.T) {
	d := rolling(3, 1, 1)
	old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 0)
	require.Equal(t, []string{"scale md-c0 from 3 to 2: 2 machines available, minimum 2"}, rollLines(rollPlan(d, old, newSet)))
	old.Generation = 2 // it may have been told anything in between
	dec := rollPlan(d, old, newSet)
	require.Empty(t, rollLines(dec))
	require.Contains(t, rollReasons(dec), deployment.ReasonSetNotReported)
}

func TestMachinesThatMayGoForOneThatWasNotSeenAreNotCountedOn(t *testing.T) {
	d := rolling(3, 1, 1)
	sure, unsure, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "cx", 1, 2, 1), rollSet(d, "c1", 0, 0, 0)
	in := rollSee(d, sure, unsure, newSet)
	in.Machines = in.Machines[:3] // the other machine of the second set is not seen
	require.Equal(t, []string{"scale md-c0 from 2 to 1: 2 machines available, minimum 2"}, rollLines(deployment.Plan(in, rollPolicy, rollNow)))
	in.Machines[2].Annotations = map[string]string{v1alpha1.MachinePriority: "1"} // it goes before a new one
	dec := deployment.Plan(in, rollPolicy, rollNow)
	require.Empty(t, rollLines(dec), "its set lets it go, and then two are available")
	require.Contains(t, rollReasons(dec), deployment.ReasonMinimumAvailable)

	in.Machines[2].Annotations = nil
	machineset.NameVictims(unsure, []string{in.Machines[2].Name})
	require.Empty(t, rollLines(deployment.Plan(in, rollPolicy, rollNow)), "it was named to go")
}

func TestBrokenMachinesMakePlaceOneAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		spec, machines, fresh int32
		want                  []string
	}{
		"all that are wanted have a place":          {3, 3, 1, []string{"scale md-c0 from 3 to 2: it makes place for a new machine, as there is no capacity for more"}},
		"the one before is not gone yet":            {2, 3, 1, nil},
		"the place of the one before is free still": {2, 2, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling(3, 1, 0)
			in := rollSee(d, rollSet(d, "c0", c.spec, c.machines, 1), rollSet(d, "c1", c.fresh, c.fresh, 0))
			for _, m := range in.Machines[1:c.machines] {
				m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
			}
			for _, m := range in.Machines[c.machines:] {
				m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted"}
			}
			policy := rollPolicy
			policy.OnNoCapacity = deployment.NoCapacityUseUnavailable
			require.Equal(t, c.want, rollLines(deployment.Plan(in, policy, rollNow)))
		})
	}
}

func TestWhatIsReportedAndWhatGoesMayBeDifferentMachines(t *testing.T) {
	d := rolling(3, 1, 1)
	old, newSet := rollSet(d, "c0", 2, 3, 3), rollSet(d, "c1", 1, 1, 1)
	require.Equal(t, []string{"scale md-c0 from 2 to 1: 2 machines available, minimum 2"}, rollLines(rollPlan(d, old, newSet)))
	in := rollSee(d, old, newSet)
	old.Status.AvailableReplicas = 2 // one broke, and it need not be the one that goes
	require.Empty(t, rollLines(deployment.Plan(in, rollPolicy, rollNow)))
}

func TestPreservedMachinesStayWhileASetIsBeingDeleted(t *testing.T) {
	d := rolling(3, 1, 0)
	kept, doomed, newSet := rollSet(d, "c0", 1, 1, 0), rollSet(d, "cx", 1, 1, 1), rollSet(d, "c1", 2, 2, 2)
	in := rollSee(d, kept, doomed, newSet)
	in.Machines[0].Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineFailed, PreserveExpiryTime: new(metav1.NewTime(rollNow.Add(time.Hour)))}
	require.Equal(t, []string{"scale md-c0 from 1 to 0: 3 machines available, minimum 3"}, rollLines(deployment.Plan(in, rollPolicy, rollNow)))
	doomed.DeletionTimestamp = new(metav1.NewTime(rollNow))
	require.Empty(t, rollLines(deployment.Plan(in, rollPolicy, rollNow)), "there is room for a new one when it is gone")
}

func TestNothingIsTakenFromASetThatIsBeingDeleted(t *testing.T) {
	d := rolling(3, 1, 0)
	doomed, old, newSet := rollSet(d, "c0", 1, 1, 0), rollSet(d, "cx", 3, 3, 2), rollSet(d, "c1", 0, 0, 0)
	doomed.DeletionTimestamp = new(metav1.NewTime(rollNow))
	require.Equal(t, []string{"scale md-cx from 3 to 2: 2 machines available, minimum 3"}, rollLines(rollPlan(d, doomed, old, newSet)))
}

func TestABrokenOldMachineStaysWhileItMayBeNeededForANewOne(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 3, 3, 1), rollSet(d, "c1", 1, 1, 1)
	require.Equal(t, []string{"scale md-c0 from 3 to 2: 2 machines available, minimum 3"}, rollLines(rollPlan(d, old, newSet)))
	in := rollSee(d, old, newSet)
	newSet.Status.AvailableReplicas = 0 // the new one is not, or not any more
	require.Empty(t, rollLines(deployment.Plan(in, rollPolicy, rollNow)))
}
