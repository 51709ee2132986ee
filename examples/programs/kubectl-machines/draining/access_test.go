// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

// TestRole_Documented_IsWhatIsUsed asserts that the documented permissions are those that the
// command uses.
func TestRole_Documented_IsWhatIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, args := range [][]string{
		{"node-1", "--wait-for-volumes", "--force-after=100ms"},
		{"node-1", "--undo", "--timeout=200ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, append(blocked(), claimed()...)...)
			r.run(t.Context(), args...)
			for _, a := range r.client.Actions() {
				resource := a.GetResource().Resource
				if a.GetSubresource() != "" {
					resource += "/" + a.GetSubresource()
				}
				if group := a.GetResource().Group; group != "" {
					resource += "." + group
				}
				used[resource+" "+a.GetVerb()] = true
			}
		})
	}
	require.Equal(t, slices.Sorted(maps.Keys(documented(t))), slices.Sorted(maps.Keys(used)))
}

// documented reads the table in the help of the command.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	_, table, found := strings.Cut(draining.Help, "and it says so.\n\n")
	require.True(t, found)
	access := map[string]bool{}
	for line := range strings.Lines(table) {
		resources, verbs, _ := strings.Cut(strings.TrimSpace(line), "  ")
		verbs, _, _ = strings.Cut(verbs, ", with ")
		for resource := range strings.SplitSeq(resources, ", ") {
			for verb := range strings.SplitSeq(strings.TrimSpace(verbs), ", ") {
				access[resource+" "+verb] = true
			}
		}
	}
	return access
}

func TestDryRun_Client_OnlyReads(t *testing.T) {
	r := newHarness(t, append(blocked(), claimed()...)...)
	require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--dry-run", "--wait-for-volumes"), r.errOut)
	for _, a := range r.client.Actions() {
		require.Contains(t, []string{"get", "list"}, a.GetVerb())
	}
}
