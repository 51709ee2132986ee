// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
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
	at := 0
	for _, says := range []string{ // in this order
		"Its clock is up to 60 times as fast as yours", "Each line: ", "== CREATE ", ": new", ": Pending", ": Running", "== ROLL ", ": Terminating: ", ": deleted",
		"== DRAIN ", "a user deletes machine workers-", "BudgetNeverAllows: budget default/app never allows a disruption", "kubectl machines explain machine/workers-",
		"waits for   pod/default/app-", "the user changes the budget", ": deleted", "== REPAIR ", "becomes silent", "becomes silent", ": Unknown: ", ": Unknown: ",
		": Failed: ", ": deleted", ": Failed: ", ": deleted", "== DELETE ", ": deleted",
		"MACHINES  AT MOST  AVAILABLE   DRAINS  REPLACED  VMS LEFT  WRITES  REPEATED\n9         4        at least 2  7       2         0 ",
		"ok: no bound was violated at any time", "Next:", "docs/concepts.md",
	} {
		i := strings.Index(out[at:], says)
		require.GreaterOrEqual(t, i, 0, "%q is not below\n%s\nin\n%s", says, out[:at], out[at:])
		at += i + len(says)
	}
}

func TestDemo_Log_IsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	last := 0.0
	for line := range strings.Lines(output(t, "-faults")) {
		var seconds float64
		if _, err := fmt.Sscanf(line, "%fs ", &seconds); err == nil {
			require.GreaterOrEqual(t, seconds, last, line)
			last = seconds
		}
	}
	require.Greater(t, last, 100.0)
}

func TestDemo_Verbose_PrintsDecisionsAndReasons(t *testing.T) {
	t.Parallel()
	out := output(t, "-v", "-replicas", "1")
	for _, says := range []string{
		"phase \"\", Create Processing (NoVM", "create the VM (NoVM)", "drain node ", "delete the VM (Drained)",
		"create 1 machine", "(Referenced: machineclass/small", // or its successor
	} {
		require.Contains(t, out, says)
	}
}

func TestDemo_Faults_Succeeds(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-seed", "0"}, {"-seed", "1"}, {"-seed", "2"}, {"-replicas", "12"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			require.Contains(t, output(t, append(args, "-faults")...), "ok: no bound was violated at any time")
		})
	}
}

func TestDemo_TwoReplacementsAtOnce_ReturnsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := settings{replicas: 3, seed: 1, speed: 60}
		w := newWorld(s, never)
		w.policy.MaxReplacements = 10
		err := perform(t.Context(), w, s, io.Discard)
		require.ErrorContains(t, err, "failed although another one was not replaced yet")
	})
}
