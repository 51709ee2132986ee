// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

func TestCleanup_AnyEndOfTheTest_OnlyLogsAreLeft(t *testing.T) {
	for _, tc := range []struct {
		name, mode string
		signal     syscall.Signal
		code       int // -1: killed by a signal
		folder     bool
		logs       bool
	}{
		{name: "a panic", mode: "panic", code: 2, folder: true, logs: true},
		{name: "a timeout", mode: "timeout", code: 2, folder: true, logs: true},
		{name: "an exit in the middle", mode: "exit", code: 3, folder: true, logs: true},
		{name: "SIGKILL", mode: "hang", signal: syscall.SIGKILL, code: -1, folder: true, logs: true},
		{name: "SIGTERM", mode: "hang", signal: syscall.SIGTERM, code: 130, logs: true},
		{name: "a failed test", mode: "fail", code: 1, logs: true},
		{name: "tests that pass", mode: "pass", code: 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			temp := t.TempDir()
			state, stderr, code := runChild(t, temp, tc.mode, tc.signal)
			require.Equal(t, tc.code, code, "%s", stderr)
			require.Len(t, state.PIDs, 3)
			require.Eventually(t, func() bool { return !anyRuns(state.PIDs) }, 5*time.Second, 20*time.Millisecond)
			if tc.folder {
				require.DirExists(t, state.Folder)
				controlplane.Sweep(temp, time.Now())
			}
			require.NoDirExists(t, state.Folder)
			require.Equal(t, state.Folder, filepath.Dir(state.TempDir), "it goes with the data")
			left, err := filepath.Glob(filepath.Join(temp, "*"))
			require.NoError(t, err)
			if !tc.logs {
				require.Empty(t, left)
				return
			}
			require.Len(t, left, 1)
			require.Contains(t, stderr, left[0])
			for _, log := range []string{"etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "audit.log"} {
				require.FileExists(t, filepath.Join(left[0], log))
			}
		})
	}
}

// runChild runs this test binary as a child that dies as mode says.
func runChild(t *testing.T, temp, mode string, signal syscall.Signal) (helperState, string, int) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperFails$")
	cmd.Env = append(os.Environ(), helperEnv+"="+mode, "TMPDIR="+temp)
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadBytes('\n')
	require.NoError(t, err)
	var state helperState
	require.NoError(t, json.Unmarshal(first, &state), "%s", first)
	if signal != 0 {
		require.True(t, anyRuns(state.PIDs))
		require.NoError(t, cmd.Process.Signal(signal))
	}
	_, _ = io.Copy(io.Discard, lines)
	_ = cmd.Wait()
	return state, stderr.String(), cmd.ProcessState.ExitCode()
}

// anyRuns reports whether one of the processes runs. What is dead and has not been
// fetched by its parent has no command line.
func anyRuns(pids []int) bool {
	for _, pid := range pids {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(line) > 0 {
			return true
		}
	}
	return false
}
