// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// standard returns status and reason of the two standard conditions, and the message of the second.
func standard(t *testing.T, s v1alpha1.MachineSetStatus) (available, progressing, message string) {
	t.Helper()
	require.Len(t, s.StandardConditions, 2)
	a, p := s.StandardConditions[0], s.StandardConditions[1]
	require.Equal(t, v1alpha1.MachineSetAvailable, a.Type)
	require.Equal(t, v1alpha1.MachineSetProgressing, p.Type)
	return string(a.Status) + " " + a.Reason, string(p.Status) + " " + p.Reason, p.Message
}

func TestStatus_StandardConditions_FollowTheMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		scene                  string
		failure                machineset.Failure
		available, progressing string
	}{
		"all available":      {"1: a", machineset.Failure{}, "True MinimumReplicasAvailable", "True Complete"},
		"none wanted":        {"0", machineset.Failure{}, "True MinimumReplicasAvailable", "True Complete"},
		"one missing":        {"2: a", machineset.Failure{}, "False MinimumReplicasUnavailable", "True WaitingForMachines"},
		"one not available":  {"2: a b.pending", machineset.Failure{}, "False MinimumReplicasUnavailable", "True WaitingForMachines"},
		"one too many":       {"1: a b.pending", machineset.Failure{}, "True MinimumReplicasAvailable", "True WaitingForMachines"},
		"a creation failed":  {"2: a", machineset.Failure{Create: errors.New("quota")}, "False MinimumReplicasUnavailable", "False FailedCreate"},
		"a negative number":  {"-1", machineset.Failure{}, "True MinimumReplicasAvailable", "False InvalidSpec"},
		"a deletion failed":  {"0: a", machineset.Failure{Delete: errors.New("no")}, "True MinimumReplicasAvailable", "False FailedDelete"},
		"preserved, not run": {"1: c.failed.keeps=3600", machineset.Failure{}, "True MinimumReplicasAvailable", "True Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := scene(tc.scene)
			s, changed := machineset.Status(in, tc.failure, now)
			require.True(t, changed)
			available, progressing, _ := standard(t, s)
			require.Equal(t, tc.available, available)
			require.Equal(t, tc.progressing, progressing)
			in.Set.Status = s
			later, changed := machineset.Status(in, tc.failure, now.Add(time.Second))
			require.False(t, changed)
			require.Equal(t, s.StandardConditions, later.StandardConditions)
		})
	}
}

func TestStatus_StandardCondition_TransitionTimeOfStatusOnly(t *testing.T) {
	in := observed(1)
	in.Set.Status, _ = machineset.Status(in, machineset.Failure{}, now)
	in.Set.Spec.Replicas, in.Set.Generation = 2, in.Set.Generation+1
	in.Set.Status, _ = machineset.Status(in, machineset.Failure{}, now.Add(time.Hour))
	require.Equal(t, now, in.Set.Status.StandardConditions[0].LastTransitionTime.Time, "still not available")
	require.Equal(t, "0 machines are available, 2 are wanted", in.Set.Status.StandardConditions[0].Message)
	in.Set.Spec.Replicas = 0
	s, _ := machineset.Status(in, machineset.Failure{}, now.Add(2*time.Hour))
	require.Equal(t, now.Add(2*time.Hour), s.StandardConditions[0].LastTransitionTime.Time)
}

func TestStatus_StandardConditionsDropped_OneWritePerMinute(t *testing.T) {
	in := observed(1)
	in.Set.Status, _ = machineset.Status(in, machineset.Failure{}, now)
	in.Set.Status.StandardConditions = nil
	_, changed := machineset.Status(in, machineset.Failure{}, now.Add(59*time.Second))
	require.False(t, changed)
	_, changed = machineset.Status(in, machineset.Failure{}, now.Add(time.Minute))
	require.True(t, changed, "a set of an earlier version gets them")
}

func TestStatus_ActionFailed_GenerationNotObserved(t *testing.T) {
	in := observed(1)
	in.Set.Generation, in.Set.Status.ObservedGeneration = 7, 6
	s, _ := machineset.Status(in, machineset.Failure{Unfinished: true}, now)
	require.EqualValues(t, 6, s.ObservedGeneration)
	for _, f := range []machineset.Failure{{}, {Create: errors.New("quota")}} {
		s, _ = machineset.Status(in, f, now)
		require.EqualValues(t, 7, s.ObservedGeneration)
	}
	in.Complete = false
	s, changed := machineset.Status(in, machineset.Failure{Unfinished: true}, now)
	require.False(t, changed)
	require.EqualValues(t, 6, s.ObservedGeneration)
}

func TestStatus_ConditionsOfOthers_Stay(t *testing.T) {
	in := observed(1, newMachine("a", v1alpha1.MachineRunning))
	s, _ := machineset.Status(in, machineset.Failure{Create: errors.New("quota")}, now)
	frozen := v1alpha1.MachineSetCondition{Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: "OverShootingReplicaCount"}
	in.Set.Status.Conditions = append(in.Set.Status.Conditions, frozen) // set in between; the write conflicts, and is made anew
	again, _ := machineset.Status(in, machineset.Failure{Create: errors.New("quota")}, now)
	require.Contains(t, again.Conditions, frozen)
	require.Len(t, again.Conditions, len(s.Conditions)+1)
	s, _ = machineset.Status(in, machineset.Failure{}, now)
	require.Contains(t, s.Conditions, frozen)
}

func TestStatus_FailedMachineWithoutOwner_HasNoOwnerRef(t *testing.T) {
	a, b := newMachine("a", v1alpha1.MachineFailed), newMachine("b", v1alpha1.MachineFailed)
	for _, m := range []*v1alpha1.Machine{a, b} {
		m.Status.LastOperation.State = v1alpha1.MachineStateFailed
	}
	b.OwnerReferences = nil
	s, _ := machineset.Status(observed(2, a, b), machineset.Failure{}, now)
	require.NotNil(t, s.FailedMachines)
	require.Equal(t, "ms", (*s.FailedMachines)[0].OwnerRef)
	require.Empty(t, (*s.FailedMachines)[1].OwnerRef)
}

func TestStatus_MachinesWithoutALabelOfTheTemplate_AreNotFullyLabeled(t *testing.T) {
	all, other, none := newMachine("all", v1alpha1.MachineRunning), newMachine("other", v1alpha1.MachineRunning), newMachine("none", v1alpha1.MachineTerminating)
	in := observed(3, all, other, none)
	in.Set.Spec.Template.Labels = map[string]string{"app": "w", "tier": ""}
	all.Labels["tier"], other.Labels["tier"] = "", "front"
	in.Expectations = machine.Expectations{}.Creating(v1alpha1.MachineKind, "new", now)
	s, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 4, s.Replicas)
	require.EqualValues(t, 2, s.FullyLabeledReplicas, "with the creation in flight")
}

// TestStatus_Failure_ReasonAndRenewedMessage has a status in which a creation failed. A message is not
// renewed at once, so that request numbers in errors do not make a loop of it.
func TestStatus_Failure_ReasonAndRenewedMessage(t *testing.T) {
	quota := func(n string) machineset.Failure { return machineset.Failure{Create: errors.New("quota " + n)} }
	both := quota("1")
	both.Delete = errors.New("no")
	in := observed(0, newMachine("a", v1alpha1.MachineRunning))
	in.Set.Generation = 7
	s, changed := machineset.Status(in, both, now)
	require.True(t, changed)
	require.EqualValues(t, 7, s.ObservedGeneration)
	require.Equal(t, now, s.Conditions[0].LastTransitionTime.Time)
	for _, step := range []struct {
		failure machineset.Failure
		after   time.Duration
		stored  v1alpha1.ConditionStatus
		want    string
	}{
		{both, time.Second, v1alpha1.ConditionTrue, "True FailedCreate: quota 1 since 0s, written: false"},
		{quota("2"), time.Second, v1alpha1.ConditionTrue, "True FailedCreate: quota 1 since 0s, written: false"},
		{quota("2"), time.Minute, v1alpha1.ConditionTrue, "True FailedCreate: quota 2 since 0s, written: true"},
		{machineset.Failure{Delete: errors.New("no")}, time.Second, v1alpha1.ConditionTrue, "True FailedDelete: no since 0s, written: true"},
		{machineset.Failure{}, time.Second, v1alpha1.ConditionTrue, "none"},
		{quota("3"), time.Second, v1alpha1.ConditionFalse, "True FailedCreate: quota 3 since 1s, written: true"},
	} {
		in.Set.Status = *s.DeepCopy()
		in.Set.Status.Conditions[0].Status = step.stored
		next, changed := machineset.Status(in, step.failure, now.Add(step.after))
		got := "none"
		for _, c := range next.Conditions {
			got = fmt.Sprintf("%s %s: %s since %s, written: %t", c.Status, c.Reason, c.Message, c.LastTransitionTime.Sub(now), changed)
		}
		require.Equal(t, step.want, got)
	}
}

func TestStatus_Incomplete_KeepsCounts(t *testing.T) {
	in := machineset.Observation{Set: newSet(3)}
	in.Set.Status.Replicas, in.Set.Generation = 3, 2
	_, changed := machineset.Status(in, machineset.Failure{}, now)
	require.False(t, changed)
	s, changed := machineset.Status(in, machineset.Failure{Create: errors.New("quota")}, now)
	require.True(t, changed)
	require.EqualValues(t, 3, s.Replicas)
	require.Zero(t, s.ObservedGeneration)
	require.Len(t, s.Conditions, 1)
	s, changed = machineset.Status(machineset.Observation{}, machineset.Failure{}, now)
	require.Equal(t, v1alpha1.MachineSetStatus{}, s)
	require.False(t, changed)
}

func TestStatus_FieldOfTheStoredStatusDiffers_IsWritten(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MachineSetStatus){
		"replicas":                func(s *v1alpha1.MachineSetStatus) { s.Replicas++ },
		"preservedFailedReplicas": func(s *v1alpha1.MachineSetStatus) { s.PreservedFailedReplicas++ },
		"failedMachines":          func(s *v1alpha1.MachineSetStatus) { s.FailedMachines = &[]v1alpha1.MachineSummary{{Name: "m"}} },
	} {
		in := observed(1, newMachine("a", v1alpha1.MachineRunning))
		in.Set.Status, _ = machineset.Status(in, machineset.Failure{}, now)
		_, changed := machineset.Status(in, machineset.Failure{}, now.Add(time.Hour))
		require.False(t, changed, "the time of the last operation does not count")
		change(&in.Set.Status)
		_, changed = machineset.Status(in, machineset.Failure{}, now)
		require.True(t, changed, name)
	}
}
