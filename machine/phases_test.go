// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// change of phase.
type phaseChange struct{ from, to v1alpha1.MachinePhase }

// TestEveryChangeOfPhaseIsARowAndEveryRowIsAChange walks observations of any kind:
// each change of phase that is decided is a row of the table, and each row comes
// to pass from each of its phases.
func TestEveryChangeOfPhaseIsARowAndEveryRowIsAChange(t *testing.T) {
	t.Parallel()
	table := machine.Transitions()
	seen := map[phaseChange]int{}
	for seed := range uint64(60000) {
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
		require.NotEmpty(t, machine.Events(in.Machine, u), "seed %d: %s tells nobody", seed, d)
		seen[c]++
	}
	for _, row := range table {
		from := row.From
		if from == nil {
			from = slices.DeleteFunc(slices.Clone(allPhases), func(p v1alpha1.MachinePhase) bool { return seen[phaseChange{p, row.To}] == 0 })
			require.NotEmpty(t, from, "nothing leads to %s", row.To)
		}
		for _, p := range from {
			require.NotZero(t, seen[phaseChange{p, row.To}], "%s: never from %q", row, p)
		}
	}
}

// nextPhase carries out what is decided until the phase changes, and returns the
// machine then, or nil if it does not.
func nextPhase(t *testing.T, seed uint64, in machine.Observation, p machine.Policy) (phaseChange, machine.Decision, *v1alpha1.Machine) {
	t.Helper()
	for range 12 {
		d, was := machine.Decide(in, p, now), in.Machine.Status.CurrentStatus
		if u, ok := d.Do.(machine.UpdateStatus); ok {
			is := u.Machine.Status.CurrentStatus
			if is.Phase != was.Phase {
				return phaseChange{was.Phase, is.Phase}, d, u.Machine
			}
			require.True(t, was.LastUpdateTime.IsZero() || was.LastUpdateTime.After(now) || was.LastUpdateTime.Equal(&is.LastUpdateTime),
				"seed %d: %s moves what timeouts are counted from", seed, d)
		}
		if !carriedOut(&in, d.Do) {
			break
		}
	}
	return phaseChange{}, machine.Decision{}, nil
}

// TestEveryRowOfTheTableHasItsReason leads a machine along each row, alone.
func TestEveryRowOfTheTableHasItsReason(t *testing.T) {
	t.Parallel()
	situations := map[machine.Trigger][]change{}
	for _, s := range consolidated() {
		if s.trigger != "" {
			situations[s.trigger] = append(situations[s.trigger], func(in *machine.Observation) { *in = s.in })
		}
	}
	for _, row := range machine.Transitions() {
		reached := false
		for _, situation := range situations[row.Trigger] {
			in := after(situation)
			if row.From != nil && !slices.Contains(row.From, in.Machine.Status.CurrentStatus.Phase) {
				continue
			}
			c, d, _ := nextPhase(t, 0, in, machine.DefaultPolicy())
			reached = reached || c.to == row.To && (d.Reason == row.Reason || row.Trigger == machine.TriggerRejected)
		}
		require.True(t, reached, "%s", row)
	}
}

func TestTheTableOfPhasesIsTheCallersToChange(t *testing.T) {
	t.Parallel()
	table := machine.Transitions()
	for i := range table {
		table[i].To = "changed"
		for j := range table[i].From {
			table[i].From[j] = "changed"
		}
	}
	row, ok := machine.NextPhase(v1alpha1.MachinePending, machine.TriggerNodeHealthy, func(machine.Guard) bool { return true })
	require.True(t, ok)
	require.Equal(t, v1alpha1.MachineRunning, row.To)
	row.From[0] = "changed"
	require.NotEmpty(t, cmp.Diff(table, machine.Transitions()))
	again, ok := machine.NextPhase(v1alpha1.MachinePending, machine.TriggerNodeHealthy, func(machine.Guard) bool { return true })
	require.True(t, ok)
	require.Equal(t, v1alpha1.MachinePending, again.From[0])
}

func TestTheFirstRowThatFitsCounts(t *testing.T) {
	t.Parallel()
	only := func(guards ...machine.Guard) func(machine.Guard) bool {
		return func(g machine.Guard) bool { return slices.Contains(guards, g) }
	}
	for name, tc := range map[string]struct {
		from  v1alpha1.MachinePhase
		t     machine.Trigger
		holds func(machine.Guard) bool
		want  v1alpha1.MachinePhase
		ok    bool
	}{
		"with a cluster a machine has to join":          {"", machine.TriggerVMExists, only(machine.GuardTarget), v1alpha1.MachinePending, true},
		"without one it is available":                   {"", machine.TriggerVMExists, only(machine.GuardNoTarget), v1alpha1.MachineAvailable, true},
		"nil guards hold nothing":                       {"", machine.TriggerVMExists, nil, "", false},
		"but the empty one":                             {v1alpha1.MachineRunning, machine.TriggerNodeGone, nil, v1alpha1.MachineUnknown, true},
		"any phase is any":                              {"Strange", machine.TriggerDeleted, nil, v1alpha1.MachineTerminating, true},
		"a phase that is not named stays":               {"Strange", machine.TriggerNodeHealthy, only(machine.GuardPreserved), "", false},
		"a trigger that nobody knows does nothing":      {"", "Strange", only(machine.GuardTarget), "", false},
		"one that failed recovers only if preserved":    {v1alpha1.MachineFailed, machine.TriggerNodeHealthy, only(machine.GuardPreserved), v1alpha1.MachineRunning, true},
		"a limit that refuses keeps a machine as it is": {v1alpha1.MachineUnknown, machine.TriggerHealthTimeout, only(), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row, ok := machine.NextPhase(tc.from, tc.t, tc.holds)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, row.To)
		})
	}
}

// TestThePicturesShowTheTable fails if the table has changed since the pictures
// were drawn: go generate ./machine draws them.
func TestThePicturesShowTheTable(t *testing.T) {
	t.Parallel()
	comment, err := os.ReadFile("doc_phases.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/phases.md")
	require.NoError(t, err)
	diagram := machine.PhaseDiagram(machine.Transitions())
	require.Contains(t, string(page), "```mermaid\n"+diagram+"```\n")
	require.Contains(t, string(comment), "//\t"+strings.ReplaceAll(strings.TrimSuffix(diagram, "\n"), "\n", "\n//\t")+"\npackage machine\n")
	var rows strings.Builder
	for _, row := range machine.Transitions() {
		fmt.Fprintf(&rows, "//   - %s\n", row)
		require.Contains(t, string(page), fmt.Sprintf("| %s | %s | %s |\n", row.Trigger, row.Guard, row.Reason))
	}
	require.Contains(t, string(comment), "//\n"+rows.String()+"//\n")
	require.Equal(t, len(machine.Transitions()), strings.Count(string(page), "\n| ")-1)
}

func ExamplePhaseDiagram() {
	fmt.Print(machine.PhaseDiagram([]machine.Transition{
		{From: []v1alpha1.MachinePhase{"", "Pending"}, Trigger: "NodeHealthy", Guard: "it is day", To: "Running"},
		{Trigger: "Deleted", To: "Terminating"},
	}))
	// Output:
	// stateDiagram-v2
	//     state "any phase" as Any
	//     [*] --> Running : NodeHealthy
	//     Pending --> Running : NodeHealthy
	//     Any --> Terminating : Deleted
	//     note right of Any
	//         new, Pending to Running: NodeHealthy, if it is day
	//     end note
}
