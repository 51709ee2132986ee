// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestCount_EachMachine_Table(t *testing.T) {
	for name, c := range map[string]struct {
		machine string
		want    members.Counts
	}{
		"running":                                   {"m", members.Counts{Present: 1, Eligible: 1, Ready: 1, Available: 1}},
		"without a cluster to join":                 {"m.available", members.Counts{Present: 1, Eligible: 1, Available: 1}},
		"running for too short a time":              {"m.fresh", members.Counts{Present: 1, Eligible: 1, Ready: 1, Settling: 1}},
		"about to leave":                            {"m.uid=uid-going", members.Counts{Present: 1, Going: 1}},
		"about to leave, failed and preserved":      {"m.uid=uid-going.failed.keeps=3600.preserve=auto-preserved", members.Counts{Present: 1, Going: 1, Failed: 1, PreservedFailed: 1, AutoPreserved: 1}},
		"leaving by its timestamp":                  {"m.leaving", members.Counts{Leaving: 1, ShortLived: 1}},
		"leaving after a life that was long enough": {"m.lived", members.Counts{Leaving: 1}},
		"leaving, and preserved by the set":         {"m.terminating.preserve=auto-preserved", members.Counts{Leaving: 1, AutoPreservedLeaving: 1}},
		"moving from another set":                   {"m.moved", members.Counts{Present: 1, Moving: 1, Ready: 1, Available: 1}},
		"being updated in place":                    {"m.updating", members.Counts{Present: 1, Eligible: 1, Updating: 1}},
		"failed, and preserved":                     {"m.failed.keeps=3600", members.Counts{Present: 1, Eligible: 1, Failed: 1, PreservedFailed: 1}},
		"running, and without a UID":                {"m.uid=", members.Counts{Present: 1, Ready: 1, Available: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(3)
			set.Spec.MinReadySeconds = 1
			f := machine.Expectations{}.Creating(v1alpha1.MachineKind, "x", now).Deleting(v1alpha1.MachineKind, "going", "uid-going", now)
			c.want.Desired, c.want.InFlight, c.want.Machines = 3, 1, 1
			require.Empty(t, cmp.Diff(c.want, members.Count(set, []*v1alpha1.Machine{nil, machineFrom(c.machine)}, f, now)))
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
		for _, del := range decided.Of[machinist.Delete](d.Actions) {
			if del.Reason == machineset.ReasonTooMany || del.Reason == machineset.ReasonMarked {
				tooMany++
			}
		}
		if len(decided.Of[machinist.Delete](d.Actions)) > 0 && in.Set.DeletionTimestamp == nil {
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

func TestAvailableSince_Conditions_NodeReadyElsePhase(t *testing.T) {
	phase, ready := now.Add(-time.Minute), now.Add(-time.Hour)
	m := newMachine("m", v1alpha1.MachineRunning)
	m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(phase)
	notReady := readySince(ready)
	notReady[1].Status = corev1.ConditionFalse
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		want       time.Time
	}{"none": {nil, phase}, "ready": {readySince(ready), ready}, "not ready": {notReady, phase}, "no time": {readySince(time.Time{}), phase}} {
		m.Status.Conditions = c.conditions
		since, ok := members.AvailableSince(m)
		require.True(t, ok, name)
		require.Equal(t, c.want, since, name)
	}
	m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
	for _, m := range []*v1alpha1.Machine{m, nil} {
		_, ok := members.AvailableSince(m)
		require.False(t, ok)
	}
	require.False(t, members.AvailableFor(m, -time.Hour, now))
	require.True(t, members.AvailableFor(newMachine("m", v1alpha1.MachineRunning), time.Hour, now), "no time is recorded")
}

func TestNextAvailable_SeveralSettling_LongestWait(t *testing.T) {
	machines := []*v1alpha1.Machine{nil, machineFrom("f.pending")}
	for _, text := range []string{"a.leaving.since=59s", "b.since=1m", "e.since=30s", "d.since=30s", "c.since=1s"} {
		machines = append(machines, machineFrom(text))
	}
	for range 2 {
		m, at := members.NextAvailable(machines, time.Minute, now)
		require.Equal(t, "d", m.Name)
		require.Equal(t, now.Add(30*time.Second), at)
		slices.Reverse(machines)
	}
	m, at := members.NextAvailable(machines, 0, now)
	require.Nil(t, m)
	require.Zero(t, at)
}

func TestMissing_Sets_Table(t *testing.T) {
	set := func(uid types.UID, text string) *v1alpha1.MachineSet {
		in, _ := scene(text)
		in.Set.UID = uid
		return in.Set
	}
	of := func(uid types.UID) *v1alpha1.Machine {
		m := newMachine("m", v1alpha1.MachineRunning)
		m.OwnerReferences[0].UID = uid
		return m
	}
	leaving := of("a")
	leaving.DeletionTimestamp = deletedNow()
	type sets = []*v1alpha1.MachineSet
	type machines = []*v1alpha1.Machine
	for name, c := range map[string]struct {
		sets     sets
		machines machines
		missing  int
	}{
		"nothing is missing of nothing":                 {},
		"a set has all it wants":                        {sets{set("a", "2")}, machines{of("a"), of("a")}, 0},
		"one of two is gone":                            {sets{set("a", "2")}, machines{of("a"), nil}, 1},
		"one on its way out exists":                     {sets{set("a", "2")}, machines{of("a"), leaving}, 0},
		"too many of one set do not serve another":      {sets{set("a", "1"), nil, set("b", "2")}, machines{of("a"), of("a"), of("b")}, 1},
		"a machine without a controller does not count": {sets{set("a", "1")}, machines{{}}, 1},
		"a set that is being deleted makes none":        {sets{set("a", "2 deleted")}, nil, 0},
		"a set that may not make any waits for none":    {sets{set("a", "2 disabled")}, nil, 0},
		"a size below zero wants none":                  {sets{set("a", "-3"), set("b", "1")}, nil, 1},
	} {
		require.Equal(t, c.missing, members.Missing(c.sets, c.machines), name)
	}
}

// TestStatus_Scenes plays the scenes in testdata/scenes/status.txt.
func TestStatus_Scenes(t *testing.T) { checkScenes(t, "testdata/scenes/status.txt") }

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
