// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestCount_EachMachine_Table(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(m *v1alpha1.Machine)
		want members.Counts
	}{
		"running": {
			func(*v1alpha1.Machine) {},
			members.Counts{Present: 1, Eligible: 1, Ready: 1, Available: 1},
		},
		"without a cluster to join": {
			func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineAvailable },
			members.Counts{Present: 1, Eligible: 1, Available: 1},
		},
		"running for too short a time": {
			func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now) },
			members.Counts{Present: 1, Eligible: 1, Ready: 1, Settling: 1},
		},
		"about to leave": {
			func(m *v1alpha1.Machine) { m.UID = "uid-going" },
			members.Counts{Present: 1, Going: 1},
		},
		"about to leave, failed and preserved": {
			func(m *v1alpha1.Machine) {
				m.UID, m.Status.CurrentStatus.Phase = "uid-going", v1alpha1.MachineFailed
				preserved(m).Annotations[v1alpha1.PreserveMachineAnnotationKey] = "auto-preserved"
			},
			members.Counts{Present: 1, Going: 1, Failed: 1, PreservedFailed: 1, AutoPreserved: 1},
		},
		"leaving by its timestamp": {
			func(m *v1alpha1.Machine) { m.DeletionTimestamp = deletedNow() },
			members.Counts{Leaving: 1, ShortLived: 1},
		},
		"leaving after a life that was long enough": {
			func(m *v1alpha1.Machine) {
				m.DeletionTimestamp = deletedNow()
				m.CreationTimestamp = metav1.NewTime(m.DeletionTimestamp.Add(-shortLife))
			},
			members.Counts{Leaving: 1},
		},
		"leaving, and preserved by the set": {
			func(m *v1alpha1.Machine) {
				m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
				m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = "auto-preserved"
			},
			members.Counts{Leaving: 1, AutoPreservedLeaving: 1},
		},
		"moving from another set": {
			func(m *v1alpha1.Machine) { m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = "successful" },
			members.Counts{Present: 1, Moving: 1, Ready: 1, Available: 1},
		},
		"being updated in place": {
			func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineInPlaceUpdating },
			members.Counts{Present: 1, Eligible: 1, Updating: 1},
		},
		"failed, and preserved": {
			func(m *v1alpha1.Machine) { preserved(m).Status.CurrentStatus.Phase = v1alpha1.MachineFailed },
			members.Counts{Present: 1, Eligible: 1, Failed: 1, PreservedFailed: 1},
		},
		"running, and without a UID": {
			func(m *v1alpha1.Machine) { m.UID = "" },
			members.Counts{Present: 1, Ready: 1, Available: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, m := newSet(3), newMachine("m", v1alpha1.MachineRunning)
			set.Spec.MinReadySeconds = 1
			c.bend(m)
			f := machine.Expectations{}.Creating(machine.KindMachine, "x", now).Deleting(machine.KindMachine, "going", "uid-going", now)
			c.want.Desired, c.want.InFlight, c.want.Machines = 3, 1, 1
			require.Empty(t, cmp.Diff(c.want, members.Count(set, []*v1alpha1.Machine{nil, m}, f, now)))
		})
	}
	require.Equal(t, members.Counts{}, members.Count(nil, nil, nil, now))
}

func TestCount_Random_AddsUpAndAgreesWithDecideAndStatus(t *testing.T) {
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		in.Released = nil
		var mine []*v1alpha1.Machine
		for _, m := range in.Machines {
			if m.OwnerReferences[0].UID == in.Set.UID {
				mine = append(mine, m)
			}
		}
		in.Expectations = in.Expectations.Observe(named(in.Machines), in.Complete)
		c := members.Count(in.Set, mine, in.Expectations, now)
		require.Equal(t, c.Machines, c.Present+c.Leaving)
		require.GreaterOrEqual(t, c.Present, c.Going+c.Moving+c.Eligible)
		require.Len(t, members.Eligible(mine, in.Expectations), c.Eligible)
		require.GreaterOrEqual(t, c.Available+c.Settling, c.Ready)
		require.GreaterOrEqual(t, c.Failed, c.PreservedFailed)

		if in.Complete {
			s, _ := machineset.Status(in, machineset.Failure{}, now)
			require.EqualValues(t, c.Machines+c.InFlight, s.Replicas)
			require.EqualValues(t, c.Ready, s.ReadyReplicas)
			require.EqualValues(t, c.Available, s.AvailableReplicas)
			require.EqualValues(t, c.PreservedFailed, s.PreservedFailedReplicas)
			require.EqualValues(t, c.AutoPreserved+c.AutoPreservedLeaving, s.AutoPreserveFailedMachineCount)
		}
		d := machineset.Decide(in, machineset.Policy{}, now)
		if n := created(d); n > 0 {
			require.Equal(t, c.Missing(), n)
		}
		tooMany := 0
		for _, del := range deletes(d) {
			if del.Reason == machineset.ReasonTooMany || del.Reason == machineset.ReasonMarked {
				tooMany++
			}
		}
		if len(deletes(d)) > 0 && in.Set.DeletionTimestamp == nil {
			demanded := 0
			for _, m := range members.Eligible(mine, in.Expectations) {
				if members.NamedByAutoscaler(in.Set, m) {
					demanded++
				}
			}
			require.Equal(t, max(c.Surplus(), demanded), tooMany)
		}
	})
}

// TestPreserved_AllFunctions_Agree asserts that counting, ranking, choosing, replacing and
// reporting treat a preserved machine alike.
func TestPreserved_AllFunctions_Agree(t *testing.T) {
	kept, good := preserved(newMachine("kept", v1alpha1.MachineFailed)), newMachine("good", v1alpha1.MachineRunning)
	in := observed(2, kept, good)
	c := members.Count(in.Set, in.Machines, in.Expectations, now)
	require.Equal(t, 2, c.Present, "it counts as a replica: none is created in its place")
	require.Equal(t, 1, c.Available)
	require.Equal(t, 1, c.PreservedFailed)
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions, "it is not replaced")
	require.Equal(t, machineset.ReasonPreserved, d.Reason)
	require.Equal(t, now.Add(time.Hour), d.NextCheck)
	s, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 1, s.PreservedFailedReplicas)
	require.Nil(t, s.FailedMachines, "it is no failure to be told of")

	in.Set.Spec.Replicas = 1
	require.Equal(t, []string{"good"}, deleted(machineset.Decide(in, machineset.Policy{}, now)), "it goes last")
	members.NameVictims(in.Set, []string{"kept"})
	require.Equal(t, []string{"kept"}, deleted(machineset.Decide(in, machineset.Policy{}, now)), "unless it is named")
	in.Set.Annotations, in.Set.Spec.Replicas = nil, 0
	require.Equal(t, []string{"good", "kept"}, deleted(machineset.Decide(in, machineset.Policy{}, now)), "or nothing is to stay")

	over := preserved(newMachine("over", v1alpha1.MachineFailed))
	over.Status.CurrentStatus.PreserveExpiryTime = expiry(new(-1))
	require.Equal(t, []string{"over"}, deleted(machineset.Decide(observed(1, over), machineset.Policy{}, now)), "when its time is over, it is replaced")
}

func TestStatus_MachinesWithoutALabelOfTheTemplate_AreNotFullyLabeled(t *testing.T) {
	all, other, none := newMachine("all", v1alpha1.MachineRunning), newMachine("other", v1alpha1.MachineRunning), newMachine("none", v1alpha1.MachineTerminating)
	in := observed(3, all, other, none)
	in.Set.Spec.Template.Labels = map[string]string{"app": "w", "tier": ""}
	all.Labels["tier"], other.Labels["tier"] = "", "front"
	in.Expectations = machine.Expectations{}.Creating(machine.KindMachine, "new", now)
	s, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 4, s.Replicas)
	require.EqualValues(t, 2, s.FullyLabeledReplicas, "with the creation in flight")
}
