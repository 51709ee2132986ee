// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// forAll checks a law on random observations.
func forAll(t *testing.T, law func(t *testing.T, r *rand.Rand, in machineset.Observation)) {
	t.Helper()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := randomObservation(r)
		law(t, r, in)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestDecide_AnyOrder_SameDecision(t *testing.T) {
	forAll(t, func(t *testing.T, r *rand.Rand, in machineset.Observation) {
		before := copyOf(in)
		d := machineset.Decide(in, machineset.Policy{}, now)
		s, _ := machineset.Status(in, machineset.Failure{}, now)
		require.Empty(t, cmp.Diff(before, in), "the observation was modified")
		r.Shuffle(len(in.Released), func(i, j int) { in.Released[i], in.Released[j] = in.Released[j], in.Released[i] })
		r.Shuffle(len(in.Machines), func(i, j int) { in.Machines[i], in.Machines[j] = in.Machines[j], in.Machines[i] })
		require.Empty(t, cmp.Diff(d, machineset.Decide(in, machineset.Policy{}, now)))
		again, _ := machineset.Status(in, machineset.Failure{}, now)
		require.Empty(t, cmp.Diff(s, again))
	})
}

func TestDecide_Incomplete_NoCreationNoDeletion(t *testing.T) {
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		in.Complete = false
		require.False(t, slices.ContainsFunc(machineset.Decide(in, machineset.Policy{}, now).Actions, touches))
	})
}

func TestDecide_ZeroObservation_DoesNothing(t *testing.T) {
	d := machineset.Decide(machineset.Observation{}, machineset.Policy{}, now)
	require.Empty(t, d.Actions)
	require.Equal(t, machineset.ReasonInvalid, d.Reason)
	s, changed := machineset.Status(machineset.Observation{}, machineset.Failure{}, now)
	require.Zero(t, s)
	require.False(t, changed)
	d = machineset.Decide(machineset.Observation{Set: &v1alpha1.MachineSet{}}, machineset.Policy{}, time.Time{})
	require.Empty(t, d.Actions)
	require.Equal(t, machineset.ReasonInvalid, d.Reason)
}

func TestDecide_ActionsOrHolds_HaveNextCheck(t *testing.T) {
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		d := machineset.Decide(in, machineset.Policy{}, now)
		require.NotEmpty(t, d.Reason)
		if len(d.Actions) == 0 && len(d.Holds) == 0 {
			require.Equal(t, machineset.ReasonSettled, d.Reason)
			require.Zero(t, d.NextCheck)
			return
		}
		require.True(t, d.NextCheck.After(now), "%v", d)
		for _, h := range d.Holds {
			require.NotEmpty(t, h.Reason)
			require.NotEmpty(t, h.Subject)
			require.True(t, h.Until.IsZero() || h.Until.After(now))
			require.NotEmpty(t, h.String())
		}
		for _, a := range d.Actions {
			require.NotEmpty(t, a.String())
		}
	})
}

// exhaust repeats a decision on one and the same view until it asks for nothing
// more, and returns what it asked for in all.
func exhaust(t *testing.T, in machineset.Observation, p machineset.Policy) (machineset.Observation, int, []string) {
	t.Helper()
	n, names := 0, []string(nil)
	for i := range 30 {
		d := machineset.Decide(in, p, now.Add(time.Duration(i)))
		if created(d)+len(decided.Deletes(d.Actions)) == 0 {
			return in, n, sorted(names)
		}
		n, names = n+created(d), append(names, decided.Deletes(d.Actions)...)
		in.Expectations = carryOut(in.Expectations, d, now.Add(time.Duration(i)))
	}
	t.Error("it never has enough")
	return in, n, names
}

// TestDecide_SameViewAgain_AddsNothing asserts that two passes on one view ask for the difference
// once (I-4).
func TestDecide_SameViewAgain_AddsNothing(t *testing.T) {
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		first := machineset.Decide(in, machineset.Policy{}, now)
		in, n, names := exhaust(t, in, machineset.Policy{})
		require.Equal(t, created(first), n)
		require.Len(t, slices.Compact(slices.Clone(names)), len(names), "one machine twice")
		if n == 0 { // what is missing is created first; what is bad goes in the pass after it
			require.Equal(t, sorted(decided.Deletes(first.Actions)), names)
		}

		// Nor does time alone make it a licence: it asks to look.
		d := machineset.Decide(in, machineset.Policy{}, now.Add(24*time.Hour))
		require.Zero(t, created(d))
		if in.Set.DeletionTimestamp == nil && len(machineset.Validate(in.Set)) == 0 {
			looks := 0
			for _, a := range d.Actions {
				if r, ok := a.(machinist.Refresh); ok && r.Name != "" {
					looks++
				}
			}
			f := in.Expectations.Observe(named(in.Machines), in.Complete)
			require.Equal(t, len(f), looks)
		}
	})
}

func TestDecide_Burst_BoundsEachDecision(t *testing.T) {
	forAll(t, func(t *testing.T, r *rand.Rand, in machineset.Observation) {
		_, n, names := exhaust(t, in, machineset.Policy{})
		p := machineset.Policy{Burst: 1 + r.IntN(3)}
		d := machineset.Decide(in, p, now)
		require.LessOrEqual(t, created(d)+len(decided.Deletes(d.Actions)), p.Burst)
		_, bounded, boundedNames := exhaust(t, in, p)
		require.Equal(t, n, bounded)
		require.Equal(t, names, boundedNames)
	})
}

// TestDecide_ScaleDown_ExactNumberNamedFirst asserts that machines on their way out are neither
// chosen nor counted (I-5).
func TestDecide_ScaleDown_ExactNumberNamedFirst(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		set := newSet(int32(r.IntN(6))) //nolint:gosec // small
		set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at(0)}
		k := 1 + r.IntN(5)
		in := machineset.Observation{Set: set, Complete: true, Proven: true}
		named := []string{}
		for i := range int(set.Spec.Replicas) + k {
			m := newMachine(fmt.Sprintf("m%d", i), pick[v1alpha1.MachinePhase](r, "Running", "Pending", "Unknown", ""))
			if r.IntN(3) == 0 && len(named) < k {
				named = append(named, marked(m).Name)
			} else if r.IntN(3) == 0 {
				m.Annotations[v1alpha1.MachinePriority] = pick(r, "-5", "0", "1", "9")
			}
			if r.IntN(3) == 0 {
				m.Status.CurrentStatus.PreserveExpiryTime = expiry(3600)
			}
			in.Machines = append(in.Machines, m)
		}
		for i := range r.IntN(4) {
			m := newMachine(fmt.Sprintf("old%d", i), pick[v1alpha1.MachinePhase](r, "Running", "Terminating"))
			m.DeletionTimestamp = &in.Set.CreationTimestamp
			in.Machines = append(in.Machines, m)
		}
		r.Shuffle(len(in.Machines), func(i, j int) { in.Machines[i], in.Machines[j] = in.Machines[j], in.Machines[i] })
		got := decided.Deletes(machineset.Decide(in, machineset.Policy{}, now).Actions)
		require.Len(t, got, k, "seed %d", seed)
		require.Equal(t, named, sorted(got[:len(named)]), "seed %d", seed)
	}
}

// TestDecide_Random_NeverMoreThanDesired asserts that the machines of a set and those that it has
// released exceed the replicas by a bounded number.
func TestDecide_Random_NeverMoreThanDesired(t *testing.T) {
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		const limit = 3
		if n := created(machineset.Decide(in, machineset.Policy{}, now)); n > 0 {
			c := members.Count(in.Set, in.Machines, in.Expectations.Observe(named(in.Machines), true), now)
			foreign, released := 0, 0
			for _, m := range in.Machines {
				if !members.Leaving(m) && m.OwnerReferences[0].UID != in.Set.UID {
					foreign++
				}
			}
			for _, m := range in.Released {
				if !members.Leaving(m) {
					released++
				}
			}
			require.LessOrEqual(t, c.Present-foreign+c.InFlight+n, c.Desired)
			require.LessOrEqual(t, c.Present-foreign+c.InFlight+n+released, c.Desired+limit)
		}
	})
}

func TestDecide_Deletions_HaveTheObservedUID(t *testing.T) {
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		for _, a := range machineset.Decide(in, machineset.Policy{}, now).Actions {
			del, ok := a.(machinist.Delete)
			if !ok {
				continue
			}
			m := del.Object.(*v1alpha1.Machine)
			require.NotEmpty(t, m.UID)
			require.Contains(t, in.Machines, m)
			require.Equal(t, del.Reason == machineset.ReasonFailed, del.Unchanged)
			require.False(t, members.Leaving(m))
			require.EqualValues(t, "uid-ms", m.OwnerReferences[0].UID)
			if in.Set.DeletionTimestamp == nil {
				require.False(t, members.Transferred(m))
			}
		}
	})
}

// TestDecide_AnyRecordedTime_NextCheckIsLater has the clock of the set differ from those that
// recorded the times of an observation.
func TestDecide_AnyRecordedTime_NextCheckIsLater(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 41))
		in := randomObservation(r)
		for _, clock := range []time.Time{
			{}, now.Add(-24 * time.Hour), now.Add(-30 * time.Minute), now.Add(-3 * time.Second), now.Add(3 * time.Second), now.Add(30 * time.Minute), now.AddDate(173, 0, 0),
		} {
			d := machineset.Decide(in, machineset.Policy{}, clock)
			if len(d.Actions)+len(d.Holds) > 0 || !d.NextCheck.IsZero() {
				require.True(t, d.NextCheck.After(clock), "seed %d at %s: %s", seed, clock, d)
			}
		}
	}
}

// replacements are the reasons of deletions after which another machine is created.
var replacements = map[machinist.Reason]bool{machineset.ReasonFailed: true, machineset.ReasonPreservationOver: true}

// TestDecide_Freeze_NoCreationNoReplacement decides about any set: while there is a
// freeze, no machine is created and none is deleted because it is Failed. All other
// deletions go on.
func TestDecide_Freeze_NoCreationNoReplacement(t *testing.T) {
	creations, replaced := 0, 0
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		without := machineset.Decide(in, machineset.Policy{}, now)
		in.Freeze = machine.Freeze{Frozen: true, Message: "the target API server does not answer"}
		d := machineset.Decide(in, machineset.Policy{}, now)
		held := slices.Contains(d.Holds, in.Freeze.Hold(now))
		for _, a := range without.Actions {
			switch a := a.(type) {
			case machinist.Create:
				creations++
				require.True(t, held, "%s", d)
			case machinist.Delete:
				if replacements[a.Reason] {
					replaced++
				}
				require.True(t, replacements[a.Reason] && held || slices.Contains(d.Actions, machinist.Action(a)), "%s", d)
			}
		}
		require.Zero(t, created(d), "%s", d)
		for _, a := range decided.Of[machinist.Delete](d.Actions) {
			require.False(t, replacements[a.Reason], "%s", a)
		}
		if held {
			require.False(t, d.NextCheck.IsZero(), "%s", d)
		}
	})
	require.Greater(t, creations, 50)
	require.Greater(t, replaced, 20)
}

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
	live := machinesFrom("16*m")
	for _, m := range live {
		m.ResourceVersion = "100"
	}
	in := machineset.Observation{Set: set, Machines: live[:10], Complete: true}
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, "list each machine from the API server (IncompleteView); waits for machineset/ms: IncompleteView: the list of machines may be older than the last write of an earlier process", d.String())

	in.Proven, in.Expectations = true, machine.Listed(nil, live, in.Machines, now)
	d = machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions, d)
	require.Equal(t, "machine/m10: NotSeen: not observed yet: creations 6, deletions 0", d.Holds[0].String())
	status, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 16, status.Replicas)

	in.Machines = live
	require.Empty(t, machineset.Decide(in, machineset.Policy{}, now).Actions)
}

// TestDecide_FirstListIsOld_NothingIsDeleted has a list of a time before two machines were deleted.
func TestDecide_FirstListIsOld_NothingIsDeleted(t *testing.T) {
	t.Parallel()
	in, _ := scene("2: a b c d")
	cached := in.Machines
	for _, m := range cached {
		m.ResourceVersion = "5"
	}
	leaving := cached[0].DeepCopy()
	leaving.ResourceVersion, leaving.DeletionTimestamp = "6", deletedNow()
	written := cached[2].DeepCopy()
	written.ResourceVersion = "7"
	live := []*v1alpha1.Machine{leaving, written, cached[3]}
	in.Proven = false
	require.Equal(t, []machinist.Action{machinist.Refresh{Kind: "Machine"}}, machineset.Decide(in, machineset.Policy{}, now).Actions)

	in.Proven, in.Expectations = true, machine.Listed(nil, live, cached, now)
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Empty(t, d.Actions, d)
	require.Contains(t, d.String(), "creations 0, deletions 2, updates 1")
}

// TestStatus_Unproven_GenerationIsObservedAfterALiveList has a set whose size is the number of its cached machines.
// A process before may have created another one for the former size, which the deployment would not count.
func TestStatus_Unproven_GenerationIsObservedAfterALiveList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proven, known, own bool
		lists              bool
	}{
		"first list of a process": {known: false, own: true, lists: true}, "proven": {proven: true, own: true}, "known generation": {known: true, own: true}, "no process before": {},
	} {
		for _, deleted := range []bool{false, true} {
			in, _ := scene("2: a b")
			in.Proven, in.Set.Generation, in.Set.Status.ObservedGeneration, in.Set.Finalizers = c.proven, 2, 1, nil
			if c.known {
				in.Set.Status.ObservedGeneration = 2
			}
			if c.own {
				in.Set.Finalizers = []string{v1alpha1.MCMFinalizerName}
			}
			if deleted && c.own {
				in.Set.DeletionTimestamp = deletedNow()
				for _, m := range in.Machines {
					m.DeletionTimestamp = deletedNow()
				}
			}
			d := machineset.Decide(in, machineset.Policy{}, now)
			require.Equal(t, c.lists, slices.Contains(d.Actions, machinist.Action(machinist.Refresh{Kind: "Machine"})), "%s: %s", name, d)
			next, _ := machineset.Status(in, machineset.Failure{}, now)
			require.Equal(t, c.lists, next.ObservedGeneration == 1, name)
		}
	}
}

// TestStatus_UnprovenAndInvalid_GenerationIsObserved has a set for which no list is made: its status says why.
func TestStatus_UnprovenAndInvalid_GenerationIsObserved(t *testing.T) {
	t.Parallel()
	in, _ := scene("2: a b")
	in.Proven, in.Set.Generation, in.Set.Status.ObservedGeneration, in.Set.Spec.Selector = false, 2, 1, nil
	in.Set.Finalizers = []string{v1alpha1.MCMFinalizerName}
	require.Empty(t, machineset.Decide(in, machineset.Policy{}, now).Actions)
	next, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 2, next.ObservedGeneration)
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

// FuzzDecide throws texts at everything that is parsed, and numbers at everything
// that is counted.
func FuzzDecide(f *testing.F) {
	f.Add("1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "now", "", "Failed", int32(1), int32(1), int64(5), "42m", "m", int32(0))
	f.Add("x", "", "x", "junk", "now", "Running", int32(-1), int32(-5), int64(-1), "soon", ",,m,m,", int32(30))
	f.Add("-9223372036854775809", "2026-02-30T00:00:00Z", "", "auto-preserved", "false", "", int32(1<<30), int32(3), int64(1)<<62, "", " n ", int32(-1<<31))
	f.Add("1", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "", "", "Available", int32(0), int32(0), int64(0), "-1s", "uid-ms", int32(1<<31-1))
	f.Fuzz(func(t *testing.T, priority, marked, scaled, preserve, ofNode, phase string, replicas, maxPreserved int32, age int64, timeout, victims string, settle int32) {
		set := newSet(replicas)
		set.Spec.AutoPreserveFailedMachineMax, set.Spec.MinReadySeconds = maxPreserved, settle
		set.Annotations = map[string]string{
			v1alpha1.LastDeploymentReplicaChangeByScalerTime: scaled, v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: timeout,
			victimsAnnotation: victims,
		}
		m := newMachine("m", v1alpha1.MachinePhase(phase))
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		m.Annotations = map[string]string{
			v1alpha1.MachinePriority: priority, v1alpha1.MarkedForDeletionTime: marked,
			v1alpha1.PreserveMachineAnnotationKey: preserve, v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: timeout,
		}
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(time.Duration(age)))
		released := newMachine("n", v1alpha1.MachineRunning)
		released.OwnerReferences, released.Annotations[releasedAnnotation] = nil, victims
		in := machineset.Observation{
			Set: set, Machines: []*v1alpha1.Machine{m, nil, newMachine("o", v1alpha1.MachineRunning)}, Complete: true, Proven: true,
			Released:     []*v1alpha1.Machine{nil, released},
			Expectations: machine.Expectations{}.Creating(v1alpha1.MachineKind, phase, now.Add(time.Duration(age))).Deleting(v1alpha1.MachineKind, preserve, types.UID(marked), now),
			Nodes:        map[string]machine.NodeView{"n": nodeSaying(ofNode)},
		}
		p := machineset.Policy{Burst: int(maxPreserved), Order: orderOf([]byte(phase)[:min(8, len(phase))])}
		d := machineset.Decide(in, p, now)
		require.LessOrEqual(t, created(d)+len(decided.Deletes(d.Actions)), max(100, int(maxPreserved)))
		require.True(t, d.NextCheck.IsZero() || d.NextCheck.After(now))
		require.NotEmpty(t, d.Reason)
		if s, _ := machineset.Status(in, machineset.Failure{}, now); set.Spec.Replicas >= 0 {
			require.LessOrEqual(t, s.AvailableReplicas, s.Replicas)
		}
		for _, a := range d.Actions {
			if u, ok := a.(machinist.Update); ok && u.Object.GetName() == m.Name {
				_, again := syncOf(set, machineOf(u))
				require.False(t, again, "one write is enough")
			}
		}
	})
}
