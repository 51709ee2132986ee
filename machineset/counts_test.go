// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
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
	machines := []*v1alpha1.Machine{nil}
	for _, text := range []string{"a.leaving", "b", "e", "d", "c", "f.pending"} {
		machines = append(machines, machineFrom(text))
	}
	for i, ago := range []time.Duration{59 * time.Second, time.Minute, 30 * time.Second, 30 * time.Second, time.Second} {
		machines[i+1].Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-ago))
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
	set := func(uid types.UID, replicas int32, change ...func(*v1alpha1.MachineSet)) *v1alpha1.MachineSet {
		s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}, Spec: v1alpha1.MachineSetSpec{Replicas: replicas}}
		for _, f := range change {
			f(s)
		}
		return s
	}
	of := func(uid types.UID) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set(uid, 0), v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}}}
	}
	leaving := of("a")
	leaving.DeletionTimestamp = &metav1.Time{}
	deleted := func(s *v1alpha1.MachineSet) { s.DeletionTimestamp = &metav1.Time{} }
	disabled := func(s *v1alpha1.MachineSet) {
		s.Labels = map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: "true"}
	}
	type sets = []*v1alpha1.MachineSet
	type machines = []*v1alpha1.Machine
	for name, c := range map[string]struct {
		sets     sets
		machines machines
		missing  int
	}{
		"nothing is missing of nothing":                 {},
		"a set has all it wants":                        {sets{set("a", 2)}, machines{of("a"), of("a")}, 0},
		"one of two is gone":                            {sets{set("a", 2)}, machines{of("a"), nil}, 1},
		"one on its way out exists":                     {sets{set("a", 2)}, machines{of("a"), leaving}, 0},
		"too many of one set do not serve another":      {sets{set("a", 1), nil, set("b", 2)}, machines{of("a"), of("a"), of("b")}, 1},
		"a machine without a controller does not count": {sets{set("a", 1)}, machines{{}}, 1},
		"a set that is being deleted makes none":        {sets{set("a", 2, deleted)}, nil, 0},
		"a set that may not make any waits for none":    {sets{set("a", 2, disabled)}, nil, 0},
		"a size below zero wants none":                  {sets{set("a", -3), set("b", 1)}, nil, 1},
	} {
		require.Equal(t, c.missing, members.Missing(c.sets, c.machines), name)
	}
}
