// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/internal/child"
)

func TestStart_ProgramEnds_ErrIsItsStatus(t *testing.T) {
	for script, want := range map[string]string{"exit 0": "", "exit 3": "exit status 3"} {
		p, err := child.Start(exec.CommandContext(t.Context(), "sh", "-c", script))
		require.NoError(t, err)
		<-p.Done()
		if err := p.Err(); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

func TestStart_NoSuchProgram_Error(t *testing.T) {
	_, err := child.Start(exec.CommandContext(t.Context(), "/no/such/program"))
	require.ErrorContains(t, err, "no such file")
}

func TestSignal_Kill_ProgramEnds(t *testing.T) {
	p, err := child.Start(exec.CommandContext(t.Context(), "sleep", "600"))
	require.NoError(t, err)
	require.NoError(t, p.Signal(syscall.SIGKILL))
	require.EqualError(t, p.Err(), "signal: killed")
	require.Error(t, p.Signal(syscall.SIGKILL))
}
