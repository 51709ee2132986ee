// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestFlags_Invalid_OneLineOfError(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"no file", nil, "-f is missing"},
		{"a file without a flag", []string{pool}, "-f is missing"},
		{"a file and the cluster", []string{"pool", "-f", pool, "--live"}, "-f and --live exclude"},
		{"the cluster without a name", []string{"--live"}, "--live needs the name"},
		{"two names", []string{"a", "b", "-f", pool}, "accepts at most 1 arg"},
		{"an unknown flag", []string{"-f", pool, "--surge=3"}, "unknown flag: --surge"},
		{"two changes", []string{"-f", pool, "--to", pool, "--class=x"}, "--class and --to exclude"},
		{"standard input twice", []string{"-f", "-", "--to", "-"}, "cannot both be standard input"},
		{"a class that is not a name", []string{"-f", pool, "--class=No Name"}, `"No Name" is not a name`},
		{"an empty class", []string{"-f", pool, "--class="}, `"" is not a name`},
		{"an unknown format", []string{"-f", pool, "-o=png"}, `-o is "png", want table, json`},
		{"a negative time", []string{"-f", pool, "--join=-1s"}, "--join is -1s"},
		{"a time without a unit", []string{"-f", pool, "--leave=30"}, "--leave"},
		{"a time that is too long", []string{"-f", pool, "--update=2000000h"}, "--update"},
		{"a timeout that is too short", []string{"-f", pool, "--creation-timeout=1ms"}, "want 0 or at least 1s"},
		{"no time", []string{"-f", pool, "--for=0s"}, "--for is 0s"},
		{"more than all fail", []string{"-f", pool, "--fail=1.5"}, "--fail is 1.5"},
		{"a part that is not a number", []string{"-f", pool, "--fail=NaN"}, "--fail is NaN"},
		{"a negative quota", []string{"-f", pool, "--quota=-2"}, "--quota is -2"},
		{"an unknown effect", []string{"-f", pool, "--discourage=NoExecute"}, `--discourage is "NoExecute"`},
		{"an event without a time", []string{"-f", pool, "--at=pause"}, `"pause" is not an event`},
		{"an event at an invalid time", []string{"-f", pool, "--at=soon=pause"}, `"soon" is not a time`},
		{"an event before the change", []string{"-f", pool, "--at=-1m=pause"}, "before the rollout"},
		{"an event after the end", []string{"-f", pool, "--for=1h", "--at=2h=pause"}, "after the end"},
		{"an unknown event", []string{"-f", pool, "--at=1m=explode"}, "--help lists them"},
		{"replicas without a number", []string{"-f", pool, "--at=1m=replicas"}, "not a number"},
		{"too many replicas", []string{"-f", pool, "--at=1m=replicas:100001"}, "not a number from 0 to 100000"},
		{"a pause with a value", []string{"-f", pool, "--at=1m=pause:2"}, "takes no value"},
		{"a bound without a number", []string{"-f", pool, "--at=1m=surge:some"}, "nor a percentage"},
		{"a machine without a name", []string{"-f", pool, "--at=1m=delete:"}, "the value is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := run(t, c.args...)
			require.Equal(t, cli.Refused, status, errOut)
			require.Contains(t, errOut, c.says)
			require.True(t, strings.HasPrefix(errOut, "error: "), errOut)
			require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
			require.Empty(t, out)
		})
	}
}

func TestFlags_Help_HasDefaultsInShortLines(t *testing.T) {
	status, help, errOut := run(t, "-h")
	require.Equal(t, cli.Done, status)
	require.Empty(t, errOut)
	for _, words := range []string{"--join time", "(default 3m0s)", "-o, --output format", "--free-capacity", "--at event"} {
		require.Contains(t, help, words)
	}
	for line := range strings.Lines(help) {
		require.LessOrEqual(t, len(line), 140, line)
	}
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"5m=replicas:8", "10m=pause", "12m=resume", "15m=rollback", "1h30m=rollback:3", "6m=delete:pool-1", "0s=surge:25%", "1s=unavailable:0",
		"1m=quota:none", "1m=quota:9", "2m=select:all", "=", "==", "1m=", "1m=class:a.b", "1m=surge:%", "9999999h=pause", "1m=replicas:-1", "1ns=rollback:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := &v1alpha1.MachineDeployment{}
		after, what, err := simulation.ReadEvent(text, d)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.GreaterOrEqual(t, after, time.Duration(0))
		require.True(t, strings.HasSuffix(text, "="+what), "%q %q", text, what)
		require.GreaterOrEqual(t, d.Spec.Replicas, int32(0))
		if d.Spec.RollbackTo != nil {
			require.GreaterOrEqual(t, d.Spec.RollbackTo.Revision, int64(0))
		}
	})
}
