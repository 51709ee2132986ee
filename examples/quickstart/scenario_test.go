// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain disables the pause of client-go between errors. The pause depends on the time of the
// last error of the process. In a bubble with its own time, it could last years.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // client-go has no option for it
	quiet()                                                   // not while other tests log
	m.Run()
}

// never is for the clock in a bubble, whose time passes only while all goroutines wait.
func never() bool { return false }

// output runs the demo in a bubble and returns its output.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	var status int
	synctest.Test(t, func(t *testing.T) {
		status = quickstart(t.Context(), args, &out, &errOut, never)
	})
	require.Zero(t, status, "%s\n%s", errOut.String(), out.String())
	require.Empty(t, errOut.String())
	return out.String()
}

func TestDemo_Default_PrintsAllChaptersAndSucceeds(t *testing.T) {
	t.Parallel()
	out := output(t)
	for _, says := range []string{
		"== apply the manifests", "== roll to a new machine class", "== roll to another class, pause, and resume", "== roll back", "== roll to a class that does not work, and back",
		"== update the machines in place", "== scale up by 2, one of which never joins",
		"== the API server of the Nodes does not answer for 1m30s", "no machine failed, was created or deleted during the outage: frozen since ",
		"== an orphan VM appears", "first: vm/simulated:///demo/lost/1: WaitingForGrace", "then: delete vm/simulated:///demo/lost/1",
		"== all Nodes become silent at once, and recover", "none of 5 machines was replaced: pool/demo/workers: ReplacementsHeld",
		"== two Nodes become silent at once", "== preserve a machine that fails, and release it", "== delete everything",
		": Pending (", ": Running (", ": Terminating (", ": deleted", "the cloud holds: nothing",
		"never joined: Failed ", ": both Unknown after ", ": Failed only after that, after ", "the preservation expired", ": Failed, preserved for ",
		" tokens were deleted", "no machine set changed its size for ", "all 3 machines are of version v2", "all 3 machines are of version v4",
		"NewMachinesUnavailable: ", "there is no such image", "and no old machine was deleted", "2 of 3 VMs were kept",
	} {
		require.Contains(t, out, says)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	require.True(t, strings.HasPrefix(last, "ok: at most 5 machines and "), last)
	require.Contains(t, last, "never fewer than 3 available, no bound violated, the cloud is empty")
}

func TestDemo_Verbose_PrintsDecisionsAndReasons(t *testing.T) {
	t.Parallel()
	out := output(t, "-v", "-replicas", "1")
	for _, says := range []string{
		"phase \"\", Create Processing (NoVM", "create the VM (NoVM)", "drain node ", "delete the VM (Drained)",
		"create 1 machine", "(Referenced: machineclass/small)",
	} {
		require.Contains(t, out, says)
	}
}

func TestDemo_Faults_Succeeds(t *testing.T) {
	t.Parallel()
	for seed := range 3 {
		t.Run("seed "+strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			out := output(t, "-faults", "-seed", strconv.Itoa(seed))
			require.Contains(t, out, "no bound violated, the cloud is empty")
			require.Contains(t, out, ": Failed only after that, after ")
		})
	}
}

func TestDemo_ManyMachinesAndFaults_Succeeds(t *testing.T) {
	t.Parallel()
	out := output(t, "-faults", "-replicas", "12")
	require.Contains(t, out, "never fewer than 12 available, no bound violated, the cloud is empty")
}

func TestDemo_ChapterFails_ReturnsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := settings{replicas: 1, seed: 1, speed: 60}
		m, err := readManifests("")
		require.NoError(t, err)
		require.NoError(t, m.prepare())
		w := newWorld(s, m.provider(), never)
		w.policy.MaxReplacements = 10
		_, err = perform(t.Context(), w, s, m, io.Discard)
		require.ErrorContains(t, err, "two Nodes become silent at once: machine ")
		require.ErrorContains(t, err, "failed although the replacement of ")
	})
}

func TestDemo_OutputOfKubectl_IsApplied(t *testing.T) {
	t.Parallel()
	out := output(t, "-f", "testdata/list.yaml")
	require.Contains(t, out, "note: machine group-abcde: VM aws:///eu-west-1/i-0123456789abcdef0 is not in the simulated cloud; the machine gets a new VM")
	require.Contains(t, out, "note: machine class small of machine set group is not in the manifests")
	require.Contains(t, out, "ok: at most 4 machines and ")
	require.Contains(t, out, "== scale up by 2\n", "machines of a manifest given with -f are not made to fail")
	require.NotContains(t, out, "silent")
}

func TestDemo_ExampleManifest_IsApplied(t *testing.T) {
	t.Parallel()
	out := output(t, "-f", "../cloud/serve/machines.yaml")
	require.NotContains(t, out, "note:", "no object is missing")
	require.Contains(t, out, "ok: at most 5 machines and ")
}

func TestDemo_RecreateStrategy_Succeeds(t *testing.T) {
	t.Parallel()
	out := output(t, "-f", "testdata/recreate.yaml")
	require.Contains(t, out, "ok: at most 4 machines and 4 VMs at a time, no bound violated, the cloud is empty")
}

func TestDemo_ManifestsOfRealClusters_AreApplied(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../machine/v1alpha1/testdata/objects/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			require.Contains(t, output(t, "-f", file), "no bound violated, the cloud is empty")
		})
	}
}
