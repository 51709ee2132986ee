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

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
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
		for _, a := range machineset.Decide(in, machineset.Policy{}, now).Actions {
			switch a.(type) {
			case machinist.Create, machinist.Delete:
				t.Errorf("%s", a)
			}
		}
	})
}

func TestDecide_ZeroObservation_DoesNothing(t *testing.T) {
	d := machineset.Decide(machineset.Observation{}, machineset.Policy{}, now)
	require.Empty(t, d.Actions)
	require.Equal(t, machineset.ReasonInvalid, d.Reason)
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
		if created(d)+len(deleted(d)) == 0 {
			return in, n, sorted(names)
		}
		n, names = n+created(d), append(names, deleted(d)...)
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
			require.Equal(t, sorted(deleted(first)), names)
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
		require.LessOrEqual(t, created(d)+len(deleted(d)), p.Burst)
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
				m.Annotations[v1alpha1.MachinePriority] = "1"
				m.Annotations[v1alpha1.MarkedForDeletionTime] = at(-time.Minute)
				named = append(named, m.Name)
			} else if r.IntN(3) == 0 {
				m.Annotations[v1alpha1.MachinePriority] = pick(r, "-5", "0", "1", "9")
			}
			if r.IntN(3) == 0 {
				m.Status.CurrentStatus.PreserveExpiryTime = expiry(new(3600))
			}
			in.Machines = append(in.Machines, m)
		}
		for i := range r.IntN(4) {
			m := newMachine(fmt.Sprintf("old%d", i), pick[v1alpha1.MachinePhase](r, "Running", "Terminating"))
			m.DeletionTimestamp = &in.Set.CreationTimestamp
			in.Machines = append(in.Machines, m)
		}
		r.Shuffle(len(in.Machines), func(i, j int) { in.Machines[i], in.Machines[j] = in.Machines[j], in.Machines[i] })
		got := deleted(machineset.Decide(in, machineset.Policy{}, now))
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
