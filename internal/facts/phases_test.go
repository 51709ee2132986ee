// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	require.NoError(t, err)
	return string(data)
}

// TestPhases_APIAndDocs_HaveEachPhase asserts that the API, the table and docs/machine.md have the
// same phases.
func TestPhases_APIAndDocs_HaveEachPhase(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^\tMachine\w+ +MachinePhase = "(\w+)"$`).FindAllStringSubmatch(read(t, "machine/v1alpha1/machine.go"), -1)
	require.NotEmpty(t, declared)
	phases := []v1alpha1.MachinePhase{""}
	docs := read(t, "docs/machine.md")
	for _, d := range declared {
		phases = append(phases, v1alpha1.MachinePhase(d[1]))
		require.Contains(t, docs, "\n| "+d[1]+" |", "a row of docs/machine.md")
	}
	require.ElementsMatch(t, phases, facts.Phases())
}

func TestTraits_EachPhase_MetricOfItsOwn(t *testing.T) {
	var values []int
	for _, phase := range facts.Phases() {
		values = append(values, facts.TraitsOf(phase).Metric)
	}
	slices.Sort(values)
	require.Len(t, slices.Compact(values), len(facts.Phases()))
	require.Equal(t, facts.TraitsOf("").Metric, facts.TraitsOf("invented").Metric)
	require.False(t, facts.Exists("invented"))
}

// TestTraits_Phase_Consistent asserts what the properties of a phase imply.
func TestTraits_Phase_Consistent(t *testing.T) {
	for _, phase := range facts.Phases() {
		traits := facts.TraitsOf(phase)
		require.False(t, traits.Available && traits.Trouble, phase)
		require.False(t, traits.Updating && strings.HasSuffix(string(phase), "Failed"), phase)
		require.LessOrEqual(t, traits.Rank, facts.TraitsOf(v1alpha1.MachineRunning).Rank, "a running machine is deleted last")
		m := &v1alpha1.Machine{}
		m.Status.CurrentStatus.Phase = phase
		require.Equal(t, traits.Rank, facts.Rank(m), phase)
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
