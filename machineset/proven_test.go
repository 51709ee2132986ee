// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// touches reports whether an action creates or deletes something.
func touches(a machinist.Action) bool {
	switch a := a.(type) {
	case machinist.Create, machinist.Delete:
		return true
	case machinist.Update:
		set, ok := a.Object.(*v1alpha1.MachineSet)
		return ok && set.DeletionTimestamp != nil
	default:
		return false
	}
}

// TestDecide_FirstListIsOld_NothingIsCreated has a set whose status counts 16 machines, and a list of
// 10 of them. A live list shows the others, which are not created a second time.
func TestDecide_FirstListIsOld_NothingIsCreated(t *testing.T) {
	t.Parallel()
	set := newSet(16)
	set.Status = v1alpha1.MachineSetStatus{Replicas: 16, FullyLabeledReplicas: 16, ReadyReplicas: 16, AvailableReplicas: 16, ObservedGeneration: set.Generation}
	var live []*v1alpha1.Machine
	for i := range 16 {
		m := newMachine(fmt.Sprintf("m-%02d", i), v1alpha1.MachineRunning)
		m.ResourceVersion = "100"
		live = append(live, m)
	}
	in := machineset.Observation{Set: set, Machines: live[:10], Complete: true}
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, "list each machine from the API server (IncompleteView); waits for machineset/ms: IncompleteView: the list of machines may be older than the last write of an earlier process", d.String())

	in.Proven, in.Expectations = true, machine.Listed(nil, live, in.Machines, now)
	d = machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions, d)
	require.Equal(t, "machine/m-10: NotSeen: not observed yet: creations 6, deletions 0", d.Holds[0].String())
	status, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 16, status.Replicas)

	in.Machines = live
	require.Empty(t, machineset.Decide(in, machineset.Policy{}, now).Actions)
}

// TestDecide_FirstListIsOld_NothingIsDeleted has a list of a time before two machines were deleted.
func TestDecide_FirstListIsOld_NothingIsDeleted(t *testing.T) {
	t.Parallel()
	cached := []*v1alpha1.Machine{newMachine("a", v1alpha1.MachineRunning), newMachine("b", v1alpha1.MachineRunning), newMachine("c", v1alpha1.MachineRunning), newMachine("d", v1alpha1.MachineRunning)}
	for _, m := range cached {
		m.ResourceVersion = "5"
	}
	leaving := cached[0].DeepCopy()
	leaving.ResourceVersion, leaving.DeletionTimestamp = "6", deletedNow()
	written := cached[2].DeepCopy()
	written.ResourceVersion = "7"
	live := []*v1alpha1.Machine{leaving, written, cached[3]}
	in := machineset.Observation{Set: newSet(2), Machines: cached, Complete: true}
	require.Equal(t, []machinist.Action{machinist.Refresh{Kind: "Machine"}}, machineset.Decide(in, machineset.Policy{}, now).Actions)

	in.Proven, in.Expectations = true, machine.Listed(nil, live, cached, now)
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions, d)
	require.Contains(t, d.String(), "creations 0, deletions 2, updates 1")
}

// TestDecide_Unproven_Law asserts that nothing is created or deleted on a list that may be old, that a
// live list is requested instead, and that the set is otherwise decided as with a proven list (I-23).
func TestDecide_Unproven_Law(t *testing.T) {
	t.Parallel()
	lists := 0
	for seed := range uint64(3000) {
		in := randomObservation(rand.New(rand.NewPCG(seed, 8)))
		proven := machineset.Decide(in, machineset.Policy{}, now)
		in.Proven = false
		d := machineset.Decide(in, machineset.Policy{}, now)
		if !slices.Contains(in.Set.Finalizers, v1alpha1.MCMFinalizerName) {
			require.Equal(t, proven, d, "seed %d: no process has created anything", seed)
			continue
		}
		require.False(t, slices.ContainsFunc(d.Actions, touches), "seed %d: %s", seed, d)
		asks := slices.ContainsFunc(d.Actions, func(a machinist.Action) bool { r, ok := a.(machinist.Refresh); return ok && r.Name == "" })
		require.Equal(t, slices.ContainsFunc(proven.Actions, touches), asks, "seed %d: %s", seed, d)
		if asks {
			lists++
		}
	}
	require.Greater(t, lists, 500)
}
