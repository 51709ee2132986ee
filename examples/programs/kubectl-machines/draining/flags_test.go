// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

func TestFlags_Invalid_OneLineAndNoRequest(t *testing.T) {
	cases := []struct {
		name string
		args []string
		says string
	}{
		{"no node", nil, "name of a Node is missing"},
		{"nodes and a selector", []string{"node-1", "-l", "zone=a"}, "either names of Nodes or --selector"},
		{"an empty selector", []string{"--selector="}, "want labels such as zone=a"},
		{"a selector of nodes that does not parse", []string{"-l", "zone in (a"}, "want labels such as zone=a"},
		{"an invalid name", []string{"Node_1"}, `"Node_1" is not a valid name of a node`},
		{"an empty name", []string{""}, "not a valid name of a node"},
		{"an unknown flag", []string{"node-1", "--chunk-size=500"}, "unknown flag: --chunk-size"},
		{"a grace period that is too long", []string{"node-1", "--grace-period=9999999999"}, "--grace-period"},
		{"a grace period that is not a number", []string{"node-1", "--grace-period=30s"}, "--grace-period"},
		{"a time in the past", []string{"node-1", "--timeout=-1s"}, "--timeout is -1s"},
		{"a time without unit", []string{"node-1", "--timeout=30"}, "--timeout"},
		{"force from the start", []string{"node-1", "--force-after=0s"}, "--disable-eviction"},
		{"force in the past", []string{"node-1", "--force-after=-5m"}, "--force-after is -5m0s"},
		{"force after the end", []string{"node-1", "--force-after=10m", "--timeout=5m"}, "is not before --timeout"},
		{"force at the end", []string{"node-1", "--force-after=5m", "--timeout=5m"}, "is not before --timeout"},
		{"more force at the end", []string{"node-1", "--force-delete-after=5m", "--timeout=5m"}, "is not before --timeout"},
		{"force twice", []string{"node-1", "--disable-eviction", "--force-after=5m"}, "has no effect with --disable-eviction"},
		{"more force before less", []string{"node-1", "--force-after=5m", "--force-delete-after=1m"}, "is before --force-after"},
		{"force-delete from the start", []string{"node-1", "--force-delete-after=0s"}, "want more than 0"},
		{"a negative skip", []string{"node-1", "--skip-wait-for-delete-timeout=-1"}, "want 0 to"},
		{"an unknown dry run", []string{"node-1", "--dry-run=maybe"}, `--dry-run is "maybe"`},
		{"an unknown output", []string{"node-1", "--dry-run", "-o", "xml"}, `-o is "xml"`},
		{"a selector that does not parse", []string{"node-1", "--pod-selector=app in (web"}, "--pod-selector"},
		{"an invalid owner", []string{"node-1", "--owner=no/body"}, "--owner"},
		{"a taint without owner", []string{"node-1", "--taint=example.com/drain"}, "--taint needs --owner"},
		{"an invalid taint", []string{"node-1", "--owner=me", "--taint=a b"}, "--taint"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			e := env(&out, &errOut, nil)
			e.Connect = func() (cli.Clients, error) {
				require.Fail(t, "a client was created")
				return cli.Clients{}, nil
			}
			require.Equal(t, cli.Refused, e.Run(t.Context(), draining.New(e), c.args))
			require.Empty(t, out.String())
			require.Contains(t, errOut.String(), c.says)
			require.Equal(t, 1, strings.Count(errOut.String(), "\n"), errOut.String())
		})
	}
}

func TestHelp_EachFlag_InShortLines(t *testing.T) {
	var out, errOut bytes.Buffer
	e := env(&out, &errOut, nil)
	require.Equal(t, cli.Done, e.Run(t.Context(), draining.New(e), []string{"--help"}))
	require.Empty(t, errOut.String())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 120, line)
	}
	for _, flag := range []string{
		"--selector", "--dry-run", "--output", "--force", "--delete-emptydir-data", "--ignore-daemonsets",
		"--pod-selector", "--honor-do-not-disrupt", "--cluster-api-labels", "--grace-period", "--skip-wait-for-delete-timeout",
		"--wait-for-volumes", "--timeout", "--force-after", "--force-delete-after", "--disable-eviction", "--owner", "--taint", "--undo",
	} {
		require.Contains(t, out.String(), flag)
	}
}
