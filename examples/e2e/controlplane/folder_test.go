// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSweep_OnlyUnused_Removed(t *testing.T) {
	parent := t.TempDir()
	live, err := newFolder(parent)
	require.NoError(t, err)
	dead, err := newFolder(parent)
	require.NoError(t, err)
	require.NoError(t, dead.lock.Close()) // as the end of a process does
	unnamed := filepath.Join(parent, newPrefix+"1")
	halfRemoved := filepath.Join(parent, runPrefix+"1")
	foreign := filepath.Join(parent, "something-else")
	for _, folder := range []string{unnamed, halfRemoved, foreign} {
		require.NoError(t, os.Mkdir(folder, 0o700))
	}
	sweep(parent, time.Now())
	require.DirExists(t, live.path)
	require.NoDirExists(t, dead.path)
	require.DirExists(t, unnamed, "another process may be about to name it")
	require.DirExists(t, halfRemoved, "another process may be about to remove it")
	sweep(parent, time.Now().Add(2*time.Hour))
	require.DirExists(t, live.path)
	require.NoDirExists(t, unnamed)
	require.NoDirExists(t, halfRemoved)
	require.DirExists(t, foreign)
	require.NoError(t, live.remove())
	require.NoDirExists(t, live.path)
}
