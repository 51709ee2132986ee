// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	running := newMachine("a", v1alpha1.MachineRunning)
	pending := newMachine("b", v1alpha1.MachinePending)
	for name, tc := range map[string]struct {
		machines               []*v1alpha1.Machine
		replicas               int32
		failure                machineset.Failure
		available, progressing string
	}{
		"all available":      {[]*v1alpha1.Machine{running}, 1, machineset.Failure{}, "True MinimumReplicasAvailable", "True Complete"},
		"none wanted":        {nil, 0, machineset.Failure{}, "True MinimumReplicasAvailable", "True Complete"},
		"one missing":        {[]*v1alpha1.Machine{running}, 2, machineset.Failure{}, "False MinimumReplicasUnavailable", "True WaitingForMachines"},
		"one not available":  {[]*v1alpha1.Machine{running, pending}, 2, machineset.Failure{}, "False MinimumReplicasUnavailable", "True WaitingForMachines"},
		"one too many":       {[]*v1alpha1.Machine{running, pending}, 1, machineset.Failure{}, "True MinimumReplicasAvailable", "True WaitingForMachines"},
		"a creation failed":  {[]*v1alpha1.Machine{running}, 2, machineset.Failure{Create: errors.New("quota")}, "False MinimumReplicasUnavailable", "False FailedCreate"},
		"a negative number":  {nil, -1, machineset.Failure{}, "True MinimumReplicasAvailable", "False InvalidSpec"},
		"a deletion failed":  {[]*v1alpha1.Machine{running}, 0, machineset.Failure{Delete: errors.New("no")}, "True MinimumReplicasAvailable", "False FailedDelete"},
		"preserved, not run": {[]*v1alpha1.Machine{preserved(newMachine("c", v1alpha1.MachineFailed))}, 1, machineset.Failure{}, "True MinimumReplicasAvailable", "True Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			in := observed(tc.replicas, tc.machines...)
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

func TestDecide_InvalidSet_OneEventPerProblem(t *testing.T) {
	in := observed(1)
	in.Set.Spec.Template.Spec.Class.Name = ""
	in.Set.Generation = 3
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Len(t, d.Events, 1)
	require.Equal(t, "Warning", d.Events[0].Type)
	require.EqualValues(t, "InvalidSpec", d.Events[0].Reason)
	require.Contains(t, d.Events[0].Message, "spec.template.spec.class.name: Required value")
	require.Empty(t, d.Actions)

	in.Set.Status, _ = machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 3, in.Set.Status.ObservedGeneration, "it was refused")
	_, progressing, message := standard(t, in.Set.Status)
	require.Equal(t, "False InvalidSpec", progressing)
	require.Contains(t, message, "spec.template.spec.class.name: Required value")
	require.Empty(t, machineset.Decide(in, machineset.Policy{}, now.Add(time.Hour)).Events)

	in.Set.Spec.Replicas = -1
	require.Len(t, machineset.Decide(in, machineset.Policy{}, now).Events, 1, "another problem")

	in.Set.DeletionTimestamp = &metav1.Time{Time: now}
	in.Set.Finalizers = []string{v1alpha1.MCMFinalizerName}
	require.Empty(t, machineset.Decide(in, machineset.Policy{}, now).Events, "what is invalid is deleted")
	s, _ := machineset.Status(in, machineset.Failure{}, now)
	_, progressing, _ = standard(t, s)
	require.Equal(t, "True Complete", progressing)
}
