// SPDX-License-Identifier: Apache-2.0

package env

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// repository returns a git repository with a commit for each of these tags, and one without a tag at the end.
func repository(t *testing.T, tags ...string) (root string, at func(name string) string) {
	t.Helper()
	root = t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := git(t.Context(), root, append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
		require.NoError(t, err)
		return out
	}
	run("init", "-q")
	for _, tag := range append(tags, "") {
		run("commit", "-q", "--allow-empty", "-m", "commit "+tag)
		if tag != "" {
			run("tag", tag)
		}
	}
	return root, func(name string) string { return run("rev-parse", name) }
}

func TestLastRelease_EachHistory_OneRevision(t *testing.T) {
	for _, c := range []struct {
		name     string
		tags     []string
		variable string
		want     string
	}{
		{"no tag", nil, "", "HEAD"},
		{"tags of other modules", []string{"examples/v0.1.0"}, "", "HEAD"},
		{"the newest", []string{"v0.10.0-rc.1", "v0.10.0", "v0.9.0"}, "", "v0.10.0"},
		{"a chosen one", []string{"v0.1.0", "v0.2.0"}, "v0.1.0", "v0.1.0"},
		{"a commit", []string{"v0.1.0"}, "HEAD", "HEAD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(PreviousVariable, c.variable)
			root, at := repository(t, c.tags...)
			have, err := lastRelease(t.Context(), root)
			require.NoError(t, err)
			require.Equal(t, at(c.want), have)
		})
	}
}

func TestLastRelease_NoHistory_ErrorSaysWhatIsNeeded(t *testing.T) {
	t.Setenv(PreviousVariable, "")
	_, err := lastRelease(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "the git history of the checkout, which has to be there")
}

func TestLastRelease_MissingCommit_IsNamed(t *testing.T) {
	t.Setenv(PreviousVariable, "v9.9.9")
	root, _ := repository(t)
	_, err := lastRelease(t.Context(), root)
	require.ErrorContains(t, err, "no commit v9.9.9, fetch it or set "+PreviousVariable)
}
