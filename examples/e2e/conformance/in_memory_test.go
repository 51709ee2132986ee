// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/machinetest"
)

var update = flag.Bool("update", false, "write the golden transcripts from what the real server does")

// scenario is one story; its name is the one of its golden file.
type scenario struct {
	name string
	play func(w *world)
}

func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{
		lockingScenarios, statusScenarios, generationScenarios, finalizerScenarios, deletionScenarios, ownerScenarios,
		patchScenarios, listScenarios, watchScenarios, evictionScenarios, budgetScenarios, podScenarios, nodeScenarios, kindScenarios,
		tokenScenarios, rolloutScenarios,
	} {
		all = append(all, some...)
	}
	return all
}

func TestInMemoryCluster_EachScenario_AsTheRealServer(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			memory, server := inMemory(t), onServer(t)
			s.play(memory)
			s.play(server)
			require.NotEmpty(t, server.lines)
			require.NotContains(t, server.transcript(), "NEVER", "the scenario waits for what does not come")
			golden := filepath.Join("testdata", s.name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(server.transcript()), 0o600))
			}
			want, err := os.ReadFile(golden) //nolint:gosec // the name is one of ours
			require.NoError(t, err)
			if diff := differences(server.transcript(), memory.transcript()); diff != "" {
				t.Errorf("the in-memory cluster differs from the server (- server, + memory):\n%s", diff)
			}
			if diff := differences(string(want), server.transcript()); diff != "" {
				t.Errorf("the server differs from the golden file (- golden, + server):\n%s", diff)
			}
		})
	}
}

func TestScenarios_Names_MatchGoldenFiles(t *testing.T) {
	if *update {
		t.Skip("the files are being written")
	}
	names := map[string]bool{}
	for _, s := range scenarios() {
		require.False(t, names[s.name], "twice: %s", s.name)
		names[s.name] = true
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	require.NoError(t, err)
	require.Len(t, files, len(names))
	for _, file := range files {
		require.True(t, names[strings.TrimSuffix(filepath.Base(file), ".txt")], "no scenario: %s", file)
	}
}

// differences shows the lines that differ, each whole; a transcript has a line for every call, so that lines correspond.
func differences(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	if slices.Equal(a, b) {
		return ""
	}
	var diff strings.Builder
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			diff.WriteString("+ " + b[i] + "\n")
		case i >= len(b):
			diff.WriteString("- " + a[i] + "\n")
		case a[i] != b[i]:
			diff.WriteString("- " + a[i] + "\n+ " + b[i] + "\n")
		}
	}
	return diff.String()
}

// inMemory is a world without a server.
func inMemory(t testing.TB) *world {
	cluster, machines := machinetest.New(draintest.Options{})
	return &world{t: t, kube: cluster.Client(), machines: machines, ns: "conformance", patience: 100 * time.Millisecond, tick: func() { cluster.Tick() }}
}
