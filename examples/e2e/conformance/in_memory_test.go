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
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
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
			if *update {
				write(t, s.name, server.transcript())
			}
			golden := text(t, goldenFile(s.name))
			if diff := differences(golden, memory.transcript()); diff != "" {
				t.Errorf("the in-memory cluster differs from the golden file (- golden, + memory):\n%s", diff)
			}
			own := ""
			if file := versionFile(plane.Version(), s.name); exists(file) {
				own = text(t, file)
			}
			if diff := differences(golden, server.transcript()); diff != own {
				t.Errorf("the server with Kubernetes %s differs from the golden file (- golden, + server):\n%s\nexpected:\n%s", plane.Version(), diff, own)
			}
		})
	}
}

// goldenFile returns the file with the transcript of a scenario.
func goldenFile(name string) string { return filepath.Join("testdata", name+".txt") }

// versionFile returns the file with the lines of a transcript that differ with a version of Kubernetes. It
// does not exist if none differs.
func versionFile(version, name string) string { return filepath.Join("testdata", version, name+".txt") }

// write writes what the server does: the golden file with the default version of Kubernetes, and with
// another version the differences.
func write(t *testing.T, name, transcript string) {
	t.Helper()
	if plane.Version() == controlplane.DefaultVersion {
		require.NoError(t, os.WriteFile(goldenFile(name), []byte(transcript), 0o600))
		return
	}
	file := versionFile(plane.Version(), name)
	diff := differences(text(t, goldenFile(name)), transcript)
	if diff == "" {
		require.NoError(t, os.RemoveAll(file))
		return
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755)) //nolint:gosec // as other folders of the repository
	require.NoError(t, os.WriteFile(file, []byte(diff), 0o600))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// text returns the text of a file.
func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // the name is one of ours
	require.NoError(t, err)
	return string(data)
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
	others, err := filepath.Glob(filepath.Join("testdata", "v*", "*"))
	require.NoError(t, err)
	for _, file := range others {
		version := filepath.Base(filepath.Dir(file))
		require.Contains(t, controlplane.Versions(), version)
		require.NotEqual(t, controlplane.DefaultVersion, version, "its transcripts are the golden files")
	}
	for _, file := range append(files, others...) {
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
