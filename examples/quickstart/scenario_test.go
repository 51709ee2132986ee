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

// TestMain lets client-go handle errors without a pause between them. The one that it
// makes is counted from the last error of the process, which for a bubble, whose time is
// another, may be years away.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	m.Run()
}

// tell runs the demo and returns what it printed. It does so in a bubble, whose time
// passes only while everybody waits: it does not matter how busy the computer is, and
// no wait takes real time. The clock runs so slowly that the second which client-go
// takes to open a watch again is not longer than the patience of the demo.
func tell(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	var status int
	synctest.Test(t, func(t *testing.T) {
		status = quickstart(t.Context(), append([]string{"-speed", "10"}, args...), &out, &errOut)
	})
	require.Zero(t, status, "%s\n%s", errOut.String(), out.String())
	require.Empty(t, errOut.String())
	return out.String()
}

func TestDemo_Default_PrintsAllChaptersAndSucceeds(t *testing.T) {
	t.Parallel()
	out := tell(t)
	for _, says := range []string{
		"== apply the manifests", "== roll to a new machine class", "== roll on, pause, and resume", "== roll back", "== roll to a class that does not work, and back",
		"== update the machines in place", "== scale up by 2, one of which never joins",
		"== the API server of the Nodes does not answer for 1m30s", "no machine was failed, created or deleted meanwhile: frozen since ",
		"== a VM appears that belongs to no machine", "first: vm/simulated:///demo/lost/1: WaitingForGrace", "then: delete vm/simulated:///demo/lost/1",
		"== all Nodes fall silent at once, and come back", "none of 5 machines was replaced: pool/demo/workers: ReplacementsHeld",
		"== two Nodes fall silent at once", "== preserve a machine that fails, and release it", "== delete everything",
		": Pending (", ": Running (", ": Terminating (", ": gone", "the cloud holds: nothing",
		"never joined: Failed ", ": both Unknown after ", ": Failed only then, after ", "its time was over", ": Failed, kept for ",
		" tokens is left", "no machine set changed its size for ", "all 3 machines are of version v2", "all 3 machines are of version v4",
		"NewMachinesUnavailable: ", "there is no such image", "none of the others was given up for them", "2 of 3 VMs were kept",
	} {
		require.Contains(t, out, says)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	require.True(t, strings.HasPrefix(last, "ok: at most 5 machines and "), last)
	require.Contains(t, last, "never fewer than 3 available, no bound broken, nothing left")
}

func TestDemo_Verbose_PrintsDecisionsAndReasons(t *testing.T) {
	t.Parallel()
	out := tell(t, "-v", "-replicas", "1")
	for _, says := range []string{
		"record phase \"\", Create Processing (NoVM", "create the VM (NoVM)", "drain node ", "delete the VM (Drained)",
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
			out := tell(t, "-faults", "-seed", strconv.Itoa(seed))
			require.Contains(t, out, "no bound broken, nothing left")
			require.Contains(t, out, ": Failed only then, after ")
		})
	}
}

func TestDemo_ManyMachinesAndFaults_Succeeds(t *testing.T) {
	t.Parallel()
	out := tell(t, "-faults", "-replicas", "12")
	require.Contains(t, out, "never fewer than 12 available, no bound broken, nothing left")
}

func TestDemo_ChapterFails_ReturnsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := settings{replicas: 1, seed: 1, speed: 10}
		m, err := readManifests("")
		require.NoError(t, err)
		require.NoError(t, m.prepare())
		w := newWorld(s, m.provider())
		w.policy.MaxReplacements = 10
		_, err = perform(t.Context(), w, s, m, io.Discard)
		require.ErrorContains(t, err, "two Nodes fall silent at once: machine ")
		require.ErrorContains(t, err, "failed although the replacement of ")
	})
}

func TestDemo_OutputOfKubectl_IsApplied(t *testing.T) {
	t.Parallel()
	out := tell(t, "-f", "testdata/list.yaml")
	require.Contains(t, out, "note: machine group-abcde: its VM aws:///eu-west-1/i-0123456789abcdef0 is not in this cloud; it gets a new one")
	require.Contains(t, out, "note: machine class small, of machine set group, is not among the manifests")
	require.Contains(t, out, "ok: at most 4 machines and ")
	require.Contains(t, out, "== scale up by 2\n", "machines of a manifest given with -f are not made to fail")
	require.NotContains(t, out, "silent")
}

func TestDemo_ExampleManifest_IsApplied(t *testing.T) {
	t.Parallel()
	out := tell(t, "-f", "../cloud/serve/machines.yaml")
	require.NotContains(t, out, "note:", "nothing has to be made up")
	require.Contains(t, out, "ok: at most 5 machines and ")
}

func TestDemo_RecreateStrategy_Succeeds(t *testing.T) {
	t.Parallel()
	out := tell(t, "-f", "testdata/recreate.yaml")
	require.Contains(t, out, "ok: at most 4 machines and 4 VMs at a time, no bound broken, nothing left")
}

func TestDemo_ManifestsOfRealClusters_AreApplied(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../machine/v1alpha1/testdata/objects/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			require.Contains(t, tell(t, "-f", file), "no bound broken, nothing left")
		})
	}
}
