// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// phaseChange is a change of the phase.
type phaseChange struct{ from, to v1alpha1.MachinePhase }

// TestTransitions_RandomWorlds_MatchTheTable walks observations of any kind:
// each change of phase that is decided is a row of the table, and each row comes
// to pass from each of its phases.
func TestTransitions_RandomWorlds_MatchTheTable(t *testing.T) {
	t.Parallel()
	table := machine.Transitions()
	seen := map[phaseChange]int{}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 11))
		in, p := anyLife(r), anyPolicy(r)
		c, d, u := nextPhase(t, seed, in, p)
		if u == nil {
			continue
		}
		require.True(t, slices.ContainsFunc(table, func(row machine.Transition) bool {
			return row.To == c.to && (row.From == nil || slices.Contains(row.From, c.from))
		}), "seed %d: %s to %s is no row of the table: %s", seed, c.from, c.to, d)
		require.Equal(t, c.to == v1alpha1.MachinePending, u.Status.CurrentStatus.TimeoutActive, "seed %d", seed)
		require.NotEmpty(t, machine.Events(in.Machine, u), "seed %d: %s has no Event", seed, d)
		seen[c]++
	}
	for _, row := range table {
		from := row.From
		if from == nil {
			from = slices.DeleteFunc(slices.Clone(allPhases), func(p v1alpha1.MachinePhase) bool { return seen[phaseChange{p, row.To}] == 0 })
			require.NotEmpty(t, from, "nothing leads to %s", row.To)
		}
		for _, p := range from {
			require.NotZero(t, seen[phaseChange{p, row.To}], "%s to %s: never from %q", row.Why, row.To, p)
		}
	}
}

// nextPhase carries out what is decided until the phase changes, and returns the
// machine then, or nil if it does not.
func nextPhase(t *testing.T, seed uint64, in machine.Observation, p machine.Policy) (phaseChange, machine.Decision, *v1alpha1.Machine) {
	t.Helper()
	for range 12 {
		d, was := machine.Decide(in, p, now), in.Machine.Status.CurrentStatus
		if m := statusOf(d.Action); m != nil {
			is := m.Status.CurrentStatus
			if is.Phase != was.Phase {
				return phaseChange{was.Phase, is.Phase}, d, m
			}
			require.True(t, was.LastUpdateTime.IsZero() || was.LastUpdateTime.After(now) || was.LastUpdateTime.Equal(&is.LastUpdateTime),
				"seed %d: %s moves what timeouts are counted from", seed, d)
		}
		if !carriedOut(&in, d.Action) {
			break
		}
	}
	return phaseChange{}, machine.Decision{}, nil
}

// TestTransitions_EachRow_HasAReason leads a machine along each row, alone.
func TestTransitions_EachRow_HasAReason(t *testing.T) {
	situations := map[machinist.Reason][]change{}
	for _, s := range consolidated() {
		if s.trigger != "" {
			situations[s.trigger] = append(situations[s.trigger], func(in *machine.Observation) { *in = s.in })
		}
	}
	for _, row := range machine.Transitions() {
		reached := false
		for _, situation := range situations[row.Why] {
			in := after(situation)
			if row.From != nil && !slices.Contains(row.From, in.Machine.Status.CurrentStatus.Phase) {
				continue
			}
			c, d, _ := nextPhase(t, 0, in, machine.DefaultPolicy())
			reached = reached || c.to == row.To && (d.Reason == row.Why || row.Why == machine.ReasonInvalid)
		}
		require.True(t, reached, "%v", row)
	}
}

func TestPhaseRank_ByPhase_IsByWhatIsLost(t *testing.T) {
	in := func(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		return &v1alpha1.Machine{Status: v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: phase}}}
	}
	for i, phase := range []v1alpha1.MachinePhase{
		"Terminating", "Failed", "InPlaceUpdateFailed", "CrashLoopBackOff", "Unknown", "",
		"Pending", "InPlaceUpdating", "Available", "Running",
	} {
		require.Equal(t, i, facts.Rank(in(phase)), "%q", phase)
	}
	require.Equal(t, 9, facts.Rank(in("InPlaceUpdateSuccessful")))
	require.Equal(t, 9, facts.Rank(in("Strange")))
	require.Equal(t, 9, facts.Rank(nil))
	deleted := in("Running")
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	require.Zero(t, facts.Rank(deleted))
}
