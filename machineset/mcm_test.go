// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// The tests of this file fail on the behavior of MCM that docs/parity.md describes.

func observed(replicas int32, machines ...*v1alpha1.Machine) machineset.Observation {
	return machineset.Observation{Set: newSet(replicas), Machines: machines, Complete: true, Proven: true}
}

// TestDecide_NamedVictims_AreDeleted asserts that a reduction planned without loss of availability
// has none, though the order would delete a healthy machine first: preserved machines are last in
// it, and those of low priority first.
func TestDecide_NamedVictims_AreDeleted(t *testing.T) {
	broken := preserved(newMachine("broken", v1alpha1.MachineFailed))
	cheap := newMachine("cheap", v1alpha1.MachineRunning)
	cheap.Annotations[v1alpha1.MachinePriority] = "1"
	in := observed(1, broken, cheap)
	require.Equal(t, []string{"cheap"}, deleted(machineset.Decide(in, machineset.Policy{}, now)), "left to itself")

	members.NameVictims(in.Set, []string{"broken"})
	require.Equal(t, []machinist.Delete{
		{Object: broken, Reason: machineset.ReasonTooMany, Message: "chosen by NamedByPlan"},
	}, deletes(machineset.Decide(in, machineset.Policy{}, now)))
}

func TestStatus_MinReadySeconds_AvailableAfterwards(t *testing.T) {
	m, n := newMachine("m", v1alpha1.MachineRunning), newMachine("n", v1alpha1.MachineAvailable)
	m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-2 * time.Minute))
	m.Status.Conditions = readySince(now.Add(-20 * time.Second))
	n.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-10 * time.Second))
	in := observed(2, m, n)
	in.Set.Spec.MinReadySeconds = 30
	for _, step := range []struct {
		after           time.Duration
		available, next time.Duration
	}{{0, 0, 10 * time.Second}, {10 * time.Second, 1, 10 * time.Second}, {20 * time.Second, 2, 0}} {
		at := now.Add(step.after)
		s, _ := machineset.Status(in, machineset.Failure{}, at)
		require.EqualValues(t, step.available, s.AvailableReplicas)
		require.EqualValues(t, 1, s.ReadyReplicas)
		d := machineset.Decide(in, machineset.Policy{}, at)
		require.Empty(t, d.Actions)
		if step.next == 0 {
			require.Equal(t, machineset.ReasonSettled, d.Reason)
			require.Zero(t, d.NextCheck)
		} else {
			require.Equal(t, machineset.ReasonSettling, d.Reason)
			require.Equal(t, at.Add(step.next), d.NextCheck, "only time helps")
		}
	}
}

func TestDecide_NoSelector_IsHeld(t *testing.T) {
	in := observed(3, newMachine("a", v1alpha1.MachineFailed))
	in.Set.Spec.Selector = nil
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions)
	require.Equal(t, machineset.ReasonInvalid, d.Reason)
	require.NotZero(t, d.NextCheck)
	require.NotPanics(t, func() { machineset.Status(in, machineset.Failure{}, now) })
	claims := machineset.Claim(machineset.OwnerSet(in.Set), nil, in.Machines)
	require.Len(t, claims.Owned, 1)
	_, err := madeFor(in.Set, "m")
	require.Error(t, err)
}

// TestLeaving_DeletionTimestamp_IsLeaving asserts that scaling from 2 to 1 while one is being
// deleted deletes no second one, and what has been deleted is not available.
func TestLeaving_DeletionTimestamp_IsLeaving(t *testing.T) {
	leaving := newMachine("a", v1alpha1.MachineRunning)
	leaving.DeletionTimestamp = deletedNow()
	in := observed(1, leaving, newMachine("b", v1alpha1.MachineRunning))
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions)
	require.Equal(t, machineset.ReasonSettled, d.Reason)
	s, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 2, s.Replicas)
	require.EqualValues(t, 1, s.ReadyReplicas)
	require.EqualValues(t, 1, s.AvailableReplicas)

	in = observed(1, newMachine("a", v1alpha1.MachineRunning), newMachine("b", v1alpha1.MachineRunning))
	in.Expectations = in.Expectations.Deleting(machine.KindMachine, "a", "uid-a", now)
	s, _ = machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 1, s.AvailableReplicas, "nor one whose deletion is in flight")
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

// TestStatus_PersistentError_StaysFailed asserts that a call that always fails makes one call a
// pass, and no recursion.
func TestStatus_PersistentError_StaysFailed(t *testing.T) {
	in := observed(0, newMachine("a", v1alpha1.MachineRunning))
	for i := range 100 {
		at := now.Add(time.Duration(i) * time.Hour)
		d := machineset.Decide(in, machineset.Policy{}, at)
		require.Equal(t, []string{"a"}, deleted(d))
		require.True(t, d.NextCheck.After(at))
		in.Expectations, _ = in.Expectations.Deleting(machine.KindMachine, "a", "uid-a", at).
			Failed(machine.KindMachine, "a", apierrors.NewForbidden(schema.GroupResource{}, "a", errAPI))
	}
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
