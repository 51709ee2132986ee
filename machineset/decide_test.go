// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// world is an observation that a test case bends.
type world struct {
	machineset.Observation
}

func (w *world) add(name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	m := newMachine(name, phase)
	w.Machines = append(w.Machines, m)
	return m
}

func deletedNow() *metav1.Time { return &metav1.Time{Time: epoch} }

func TestDecide_Set_Table(t *testing.T) {
	const running, failed = v1alpha1.MachineRunning, v1alpha1.MachineFailed
	freeze := map[string]string{v1alpha1.FreezeLabelKey: "True"}
	disabled := map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: ""}
	for _, c := range []struct {
		name    string
		want    int32 // replicas
		policy  machineset.Policy
		bend    func(w *world)
		actions []string
		holds   []string
	}{
		{"a creation in flight is not repeated", 2, machineset.Policy{}, func(w *world) {
			w.add("a", running)
			w.Expectations = w.Expectations.Creating(machine.KindMachine, "b", now)
		}, nil, []string{"machine/b: NotSeen: not observed yet: creations 1, deletions 0"}},
		{"a creation in flight for too long is looked up, and not repeated", 1, machineset.Policy{}, func(w *world) {
			w.Expectations = w.Expectations.Creating(machine.KindMachine, "b", now.Add(-time.Hour))
		}, []string{"read machine b from the API server"}, []string{"machine/b: NotSeen: not observed yet: creations 1, deletions 0"}},
		{"a machine that has only a deletion timestamp does not count, and no other is deleted", 1, machineset.Policy{}, func(w *world) {
			w.add("a", running).DeletionTimestamp = deletedNow()
			w.add("b", running)
		}, nil, nil},
		{"a deletion in flight is not replaced before it is observed", 2, machineset.Policy{}, func(w *world) {
			w.add("a", running)
			w.add("b", failed)
			w.Expectations = w.Expectations.Deleting(machine.KindMachine, "b", "uid-b", now)
		}, nil, []string{"machine/b: NotSeen: not observed yet: creations 0, deletions 1"}},
		{"a frozen set creates none and still deletes Failed and named machines", 5, machineset.Policy{}, func(w *world) {
			w.Set.Labels = freeze
			w.add("a", failed)
			marked(w.add("b", running))
			w.add("c", running)
		}, []string{"delete machine b: MarkedForDeletion: chosen by NamedByAutoscaler", "delete machine a: MachineFailed"}, []string{"machineset/ms: Frozen: missing machines: 2; the label freeze forbids to create them"}},
		{"a set whose scale-up is disabled creates none", 5, machineset.Policy{}, func(w *world) {
			w.Set.Labels = disabled
			w.add("a", failed)
		}, []string{"delete machine a: MachineFailed"}, []string{"machineset/ms: ScaleUpDisabled: missing machines: 4; the label node.machine.sapcloud.io/scale-up-disabled forbids to create them"}},
		{"another value of the freeze label does not freeze", 1, machineset.Policy{}, func(w *world) {
			w.Set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "true"}
		}, []string{"create 1 machine"}, nil},
		{"a frozen set that is too large shrinks", 0, machineset.Policy{}, func(w *world) {
			w.Set.Labels = freeze
			w.add("a", running)
		}, []string{"delete machine a: TooManyMachines"}, nil},
		{"a named machine is deleted even if the set is not too large", 2, machineset.Policy{}, func(w *world) {
			marked(w.add("a", running))
			w.add("b", running)
		}, []string{"delete machine a: MarkedForDeletion: chosen by NamedByAutoscaler"}, nil},
		{"a named machine is deleted instead of another, even if it is preserved", 1, machineset.Policy{}, func(w *world) {
			m := w.add("a", running)
			marked(m)
			m.Status.CurrentStatus.PreserveExpiryTime = expiry(new(60))
			w.add("b", v1alpha1.MachinePending)
		}, []string{"delete machine a: MarkedForDeletion: chosen by NamedByAutoscaler"}, nil},
		{"a mark after the last change of size is for a change to come", 2, machineset.Policy{}, func(w *world) {
			m := w.add("a", running)
			marked(m)
			m.Annotations[v1alpha1.MarkedForDeletionTime] = at(time.Second)
			w.add("b", running)
		}, nil, nil},
		{"a preserved Failed machine stays, and says how long", 1, machineset.Policy{}, func(w *world) {
			w.add("a", failed).Status.CurrentStatus.PreserveExpiryTime = expiry(new(60))
		}, nil, []string{"machine/a: Preserved: it is Failed and stays"}},
		{"a Failed machine whose preservation has expired is deleted", 1, machineset.Policy{}, func(w *world) {
			w.add("a", failed).Status.CurrentStatus.PreserveExpiryTime = expiry(new(0))
		}, []string{"delete machine a: PreservationExpired"}, nil},
		{"a Failed machine whose Node was not read stays", 1, machineset.Policy{}, func(w *world) {
			w.add("a", failed).Labels[v1alpha1.NodeLabelKey] = "n"
		}, nil, []string{"machine/a: NodeNotLookedAt: it is Failed and stays"}},
		{"a Failed machine without a Node decides by its own annotation", 1, machineset.Policy{}, func(w *world) {
			m := w.add("a", failed)
			m.Labels[v1alpha1.NodeLabelKey] = "n"
			m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = "when-failed"
			w.Nodes = map[string]machine.NodeView{"n": {Looked: true}}
		}, nil, []string{"machine/a: PreservationPending: it is Failed and stays"}},
		{"the youngest Failed machines are preserved up to the maximum", 4, machineset.Policy{}, func(w *world) {
			w.Set.Spec.AutoPreserveFailedMachineMax = 2
			w.Set.Status.AutoPreserveFailedMachineCount = 0
			w.add("a", failed).Annotations[v1alpha1.PreserveMachineAnnotationKey] = "auto-preserved"
			w.add("b", failed)
			w.add("c", failed).CreationTimestamp = metav1.NewTime(now)
			w.add("d", running)
		}, []string{"update machine c: preservation", "delete machine b: MachineFailed"}, []string{
			"machine/a: PreservationPending: it is Failed and stays", "machine/c: PreservationPending: it is Failed and stays",
		}},
		{"a Failed machine whose Node forbids it, or is unknown, is not preserved", 2, machineset.Policy{}, func(w *world) {
			w.Set.Spec.AutoPreserveFailedMachineMax = 2
			w.add("a", failed).Labels[v1alpha1.NodeLabelKey] = "n"
			w.add("b", failed).Labels[v1alpha1.NodeLabelKey] = "unknown"
			w.Nodes = map[string]machine.NodeView{"n": nodeSaying("false")}
		}, []string{"delete machine a: MachineFailed"}, []string{"machine/b: NodeNotLookedAt: it is Failed and stays"}},
		{"what is granted beyond the maximum is revoked, the oldest first", 2, machineset.Policy{}, func(w *world) {
			w.Set.Spec.AutoPreserveFailedMachineMax = 1
			w.add("a", running).Annotations[v1alpha1.PreserveMachineAnnotationKey] = "auto-preserved"
			m := w.add("b", running)
			m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = "auto-preserved"
			m.CreationTimestamp = metav1.NewTime(now)
		}, []string{"update machine a: preservation"}, nil},
		{"a preserved machine that is leaving makes room for another", 1, machineset.Policy{}, func(w *world) {
			w.Set.Spec.AutoPreserveFailedMachineMax = 1
			m := w.add("a", failed)
			m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = "auto-preserved"
			m.DeletionTimestamp = deletedNow()
			w.add("b", failed)
		}, []string{"update machine b: preservation"}, []string{"machine/b: PreservationPending: it is Failed and stays"}},
		{"a machine that goes anyway is not preserved first", 1, machineset.Policy{}, func(w *world) {
			w.Set.Spec.AutoPreserveFailedMachineMax = 1
			w.add("a", failed).CreationTimestamp = metav1.NewTime(now)
			marked(w.Machines[0])
			w.add("b", failed)
		}, []string{"update machine b: preservation", "delete machine a: MarkedForDeletion: chosen by NamedByAutoscaler"}, []string{"machine/b: PreservationPending: it is Failed and stays"}},
		{"a machine whose preservation is over is not preserved again", 1, machineset.Policy{}, func(w *world) {
			w.Set.Spec.AutoPreserveFailedMachineMax = 1
			w.add("a", failed).Status.CurrentStatus.PreserveExpiryTime = expiry(new(-60))
		}, []string{"delete machine a: PreservationExpired"}, nil},
		{"of two views of one machine, that which is leaving counts", 1, machineset.Policy{}, func(w *world) {
			w.add("a", running)
			w.add("a", running).DeletionTimestamp = deletedNow()
		}, []string{"create 1 machine"}, nil},
		{"no more than the burst is looked for in a pass", 2, machineset.Policy{Burst: 1}, func(w *world) {
			w.Expectations = w.Expectations.Creating(machine.KindMachine, "a", epoch).Creating(machine.KindMachine, "b", epoch)
		}, []string{"read machine a from the API server"}, []string{"machine/a: NotSeen: not observed yet: creations 2, deletions 0"}},
		{"a machine that moves to another set counts and is not chosen", 1, machineset.Policy{}, func(w *world) {
			w.add("a", failed).Labels[v1alpha1.LabelKeyNodeUpdateResult] = "successful"
		}, nil, nil},
		{"a machine without identity counts and is never deleted", 0, machineset.Policy{}, func(w *world) {
			w.add("a", running).UID = ""
		}, nil, []string{"machine/a: Invalid: it has no UID, which the API server sets: set metadata.uid in tests"}},
		{"a machine of another set does not count", 1, machineset.Policy{}, func(w *world) {
			w.add("a", running).OwnerReferences[0].UID = "uid-another"
			w.add("b", running)
		}, nil, []string{"machine/a: ControlledByAnother: another object controls it, so it does not count"}},
		{"an update freshly done outweighs an Unknown machine", 1, machineset.Policy{}, func(w *world) {
			w.add("a", v1alpha1.MachineInPlaceUpdateSuccessful)
			w.add("b", v1alpha1.MachineUnknown)
		}, []string{"delete machine b: TooManyMachines: chosen by Health"}, nil},
		{"a new machine outweighs a Failed machine", 1, machineset.Policy{}, func(w *world) {
			w.add("a", "")
			w.add("b", v1alpha1.MachineFailed)
		}, []string{"delete machine b: TooManyMachines: chosen by Health"}, nil},
		{"a named machine whose deletion is in flight is not replaced by another", 1, machineset.Policy{}, func(w *world) {
			w.add("a", v1alpha1.MachinePending)
			w.add("b", running)
			members.NameVictims(w.Set, []string{"b"})
			w.Expectations = w.Expectations.Deleting(machine.KindMachine, "b", "uid-b", now)
		}, nil, []string{"machine/b: NotSeen: not observed yet: creations 0, deletions 1"}},
		{"the caller's order counts", 1, machineset.Policy{Order: machineset.Order{{Name: "Youngest", Rank: func(m *v1alpha1.Machine) int64 { return -m.CreationTimestamp.Unix() }}}}, func(w *world) {
			w.add("a", v1alpha1.MachinePending)
			w.add("b", running).CreationTimestamp = metav1.NewTime(now)
		}, []string{"delete machine b: TooManyMachines: chosen by Youngest"}, nil},
		{"a machine that has not been Running for long is waited for", 1, machineset.Policy{}, func(w *world) {
			w.Set.Spec.MinReadySeconds = 60
			w.add("a", running).Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-time.Second))
		}, nil, []string{"machine/a: MinReadySeconds: available for less than minReadySeconds: 1"}},
		{"nothing is done to a set without a selector", 3, machineset.Policy{}, func(w *world) {
			w.Set.Spec.Selector = nil
			w.add("a", failed)
		}, nil, []string{"machineset/ms: Invalid: spec.selector: Required value: Selector must not be empty"}},
		{"nothing is done to a set whose machines would be refused", 3, machineset.Policy{}, func(w *world) {
			w.Set.Spec.Template.Spec.Class.Kind = "AWSMachineClass"
			w.add("a", failed)
		}, nil, []string{`machineset/ms: Invalid: spec.template.spec.class.kind: Unsupported value: "AWSMachineClass": supported values: "MachineClass"`}},
		{"the finalizer comes before the first machine", 1, machineset.Policy{}, func(w *world) {
			w.Set.Finalizers = nil
		}, []string{"update machineset ms: finalizer added", "create 1 machine"}, nil},
		{"an incomplete view holds everything but what is harmless", 1, machineset.Policy{}, func(w *world) {
			w.Complete = false
			w.add("a", failed).Spec.Class.Kind = "Old"
			w.add("b", running).Spec.Class.Kind = "Old"
		}, []string{"update machine a: class", "update machine b: class"},
			[]string{"machineset/ms: IncompleteView: the list of machines may be incomplete"}},
		{"a deleted set deletes its machines, no more than the burst", 5, machineset.Policy{Burst: 2}, func(w *world) {
			w.Set.DeletionTimestamp = deletedNow()
			w.add("a", running)
			w.add("b", failed).Status.CurrentStatus.PreserveExpiryTime = expiry(new(60))
			w.add("c", v1alpha1.MachinePending)
			w.add("d", running).DeletionTimestamp = deletedNow()
		}, []string{"delete machine c: MachineSetDeleting", "delete machine a: MachineSetDeleting"},
			[]string{"machineset/ms: Limited: 2 of 3 machines are deleted in one pass", "machine/a: MachineSetDeleting: machines left: 4"}},
		{"a deleted set deletes its machines though it is not valid", 5, machineset.Policy{}, func(w *world) {
			w.Set.DeletionTimestamp = deletedNow()
			w.Set.Spec.Selector = nil
			w.add("a", running)
		}, []string{"delete machine a: MachineSetDeleting"}, []string{"machine/a: MachineSetDeleting: machines left: 1"}},
		{"a deleted set goes when no machine is left", 5, machineset.Policy{}, func(w *world) {
			w.Set.DeletionTimestamp = deletedNow()
		}, []string{"update machineset ms: finalizer removed"}, nil},
		{"a deleted set waits for creations in flight", 5, machineset.Policy{}, func(w *world) {
			w.Set.DeletionTimestamp = deletedNow()
			w.Expectations = w.Expectations.Creating(machine.KindMachine, "a", now)
		}, nil, []string{"machine/a: NotSeen: not observed yet: creations 1, deletions 0"}},
		{"a deleted set is not let go on a view that may not be whole", 5, machineset.Policy{}, func(w *world) {
			w.Set.DeletionTimestamp = deletedNow()
			w.Complete = false
		}, nil, []string{"machineset/ms: IncompleteView: the list of machines may be incomplete"}},
		{"a deleted set without our finalizer is no longer ours", 5, machineset.Policy{}, func(w *world) {
			w.Set.DeletionTimestamp = deletedNow()
			w.Set.Finalizers = []string{"other"}
			w.add("a", running)
		}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{machineset.Observation{Set: newSet(c.want), Complete: true, Proven: true}}
			w.Set.Annotations = scaledNow()
			c.bend(w)
			d := machineset.Decide(w.Observation, c.policy, now)
			var actions, holds []string
			for _, a := range d.Actions {
				actions = append(actions, a.String())
			}
			for _, h := range d.Holds {
				holds = append(holds, h.String())
			}
			require.Empty(t, cmp.Diff(c.actions, actions, cmpopts.EquateEmpty()))
			require.Empty(t, cmp.Diff(c.holds, holds, cmpopts.EquateEmpty()))
			for _, text := range append(actions, holds...) {
				require.Contains(t, d.String(), text)
			}
		})
	}
}

func TestDecide_NextCheck_IsTheEarliestHold(t *testing.T) {
	in := machineset.Observation{Set: newSet(2), Complete: true, Proven: true}
	preserved := newMachine("a", v1alpha1.MachineFailed)
	preserved.Status.CurrentStatus.PreserveExpiryTime = expiry(new(7200))
	in.Machines = []*v1alpha1.Machine{preserved, newMachine("b", v1alpha1.MachineRunning)}

	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, now.Add(2*time.Hour), d.NextCheck, "the end of the preservation")
	require.Equal(t, d.NextCheck, d.Holds[0].Until)
	require.Equal(t, machineset.ReasonPreserved, d.Reason)

	in.Expectations = in.Expectations.Creating(machine.KindMachine, "c", now.Add(-80*time.Second))
	d = machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, now.Add(40*time.Second), d.NextCheck, "the creation grows old")

	in.Expectations = machine.Expectations{}.Creating(machine.KindMachine, "c", now.Add(time.Hour))
	d = machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, now.Add(2*time.Minute), d.NextCheck, "a clock that was ahead")

	in.Expectations = machine.Expectations{}
	in.Set.Spec.Replicas = 3
	d = machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, now.Add(2*time.Minute), d.NextCheck, "after an action")

	in.Set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	d = machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, now.Add(10*time.Minute), d.NextCheck, "a hold without an end")
}

func TestCounts_MissingAndSurplus_NotNegative(t *testing.T) {
	require.Zero(t, members.Counts{Desired: -3, Present: 2, Eligible: -1}.Missing())
	require.Zero(t, members.Counts{Desired: 5, Present: 2, InFlight: 4}.Missing())
	require.Equal(t, 5, members.Counts{Desired: 5, Present: -2, InFlight: -4}.Missing())
	require.Zero(t, members.Counts{Desired: 5, Eligible: 4}.Surplus())
	require.Equal(t, 4, members.Counts{Desired: -5, Eligible: 4}.Surplus())
}

func TestBatches_Sizes_Double(t *testing.T) {
	require.Equal(t, []int{1, 2, 4, 8, 5}, machineset.Batches(20))
	require.Empty(t, machineset.Batches(0))
	require.Empty(t, machineset.Batches(-1))
}

func TestPredicates_Nil_False(t *testing.T) {
	require.True(t, members.Leaving(nil))
	for _, is := range []func(*v1alpha1.Machine) bool{members.Failed, members.Transferred} {
		require.False(t, is(nil))
	}
	require.False(t, members.Preserved(nil, now))
	require.False(t, members.Frozen(nil))
	require.False(t, members.ScaleUpDisabled(nil))
	require.False(t, members.NamedByAutoscaler(nil, newMachine("m", "Running")))
	require.False(t, members.NamedByAutoscaler(newSet(1), nil))
	replace, reason := machineset.ReplaceFailed(nil, machine.NodeView{}, now, now)
	require.False(t, replace)
	require.Empty(t, reason)
}
