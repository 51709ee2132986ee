// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
)

func TestRollout_Small_TableAndPicture(t *testing.T) {
	inPlace := edited(t, "RollingUpdate", "InPlaceUpdate", "rollingUpdate:", "inPlaceUpdate:\n      orchestrationType: Auto")
	for _, c := range []struct {
		name   string
		args   []string
		status int
	}{
		{"rolling", []string{"-f", pool, "--at=4m=replicas:7"}, cli.Done},
		{"in-place", []string{"-f", inPlace}, cli.Done},
		{"stopped", []string{"-f", pool, "--never", "--at=10m=surge:3"}, cli.Failed},
		{"replacing", []string{"-f", pool, "--fail=0.5", "--seed=3", "--creation-timeout=5m"}, cli.Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := run(t, c.args...)
			require.Equal(t, c.status, status, errOut)
			golden(t, c.name+"-table", out)
			_, out, _ = run(t, append(c.args, "-o=svg")...)
			golden(t, c.name+"-svg", out)
			_, out, _ = run(t, append(c.args, "-o=svg")...)
			golden(t, c.name+"-svg", out) // the output is deterministic
		})
	}
}

func TestRollout_End_ExitStatus(t *testing.T) {
	empty := edited(t, "matchLabels:\n      name: pool", "matchLabels: {}")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"help", []string{"-h"}, cli.Done, ""},
		{"complete", []string{"-f", pool}, cli.Done, ""},
		{"nothing to do", []string{"-f", pool, "--class=small"}, cli.Done, ""},
		{"new machines never available", []string{"-f", pool, "--never"}, cli.Failed, "stopped after 31m1s: Stuck (surge used up, minimum available, new machines unavailable, progress deadline exceeded)"},
		{"and rolled back", []string{"-f", pool, "--never", "--at=1h=rollback"}, cli.Done, ""},
		{"paused and never resumed", []string{"-f", pool, "--at=2m=pause"}, cli.Failed, "stopped after 4m: Paused\n"},
		{"paused and resumed", []string{"-f", pool, "--at=2m=pause", "--at=12m=resume"}, cli.Done, ""},
		{"not over in time", []string{"-f", pool, "--for=5m"}, cli.Failed, "not over after 5m: "},
		{"no Node selected", []string{"-f", pool, "--by-label"}, cli.Failed, "gate"},
		{"no file", []string{"-f", "testdata/none.yaml"}, cli.Refused, "none.yaml"},
		{"never complete before the rollout", []string{"-f", empty}, cli.Refused, "EmptySelector"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := run(t, c.args...)
			require.Equal(t, c.status, status, errOut)
			require.Contains(t, errOut, c.says)
			require.Equal(t, c.says == "", errOut == "", errOut)
			require.Equal(t, status == cli.Refused, out == "", "a simulated rollout is printed")
			require.LessOrEqual(t, strings.Count(errOut, "\n"), 1, "an error is one line")
		})
	}
}

func TestRollout_Interrupted_Fails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errOut strings.Builder
	e := cli.New(nil, io.Discard, &errOut)
	require.Equal(t, cli.Failed, e.Run(ctx, simulation.New(e), []string{"-f", pool}))
	require.Contains(t, errOut.String(), "interrupted")
}

func TestRollout_OutputFails_IsAnError(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml", "svg", "summary"} {
		var errOut strings.Builder
		e := cli.New(nil, broken{}, &errOut)
		require.Equal(t, cli.Failed, e.Run(t.Context(), simulation.New(e), []string{"-f", pool, "-o", format}), format)
		require.Contains(t, errOut.String(), "disk full", format)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFile_StandardInput(t *testing.T) {
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	status, out, errOut := runWith(t, string(data), "-f", "-", "-o", "summary")
	require.Equal(t, cli.Done, status, errOut)
	require.Contains(t, out, "class small -> small-next")
	require.Contains(t, out, "complete after 8m")
}

func TestRollout_To_AnotherSpec(t *testing.T) {
	to := edited(t, "name: small", "name: large", "replicas: 5", "replicas: 6", "maxSurge: 2", "maxSurge: 50%")
	status, d := document(t, "-f", pool, "--to", to)
	require.Equal(t, cli.Done, status)
	require.Equal(t, "5 machines -> 6 machines, class small -> large, RollingUpdate (surge 2, unavailable 1) -> RollingUpdate (surge 50%, unavailable 1)", d.Change)
	last := d.Frames[len(d.Frames)-1]
	require.Equal(t, 6, last.Available)
	require.Equal(t, 9, last.Maximum)

	other := edited(t, "name: pool", "name: other")
	status, _, errOut := run(t, "-f", pool, "--to", other)
	require.Equal(t, cli.Refused, status)
	require.Contains(t, errOut, "no MachineDeployment pool in it, but other")
}

func TestRollout_StoredDeployment_OnlySpecCounts(t *testing.T) {
	status, d := document(t, "-f", "../../../../machine/v1alpha1/testdata/objects/machinedeployment-aws.yaml")
	require.Equal(t, cli.Done, status)
	ready := 0
	for _, f := range d.Frames {
		for _, s := range f.Sets {
			ready = max(ready, s.Machines["ready"])
		}
	}
	require.Equal(t, 1, ready, "minReadySeconds is 500")
	require.GreaterOrEqual(t, d.Summary.Duration.Duration, 500*time.Second)
	require.LessOrEqual(t, d.Summary.BelowMinimum, 0)

	status, d = document(t, "-f", "../../../../machine/v1alpha1/testdata/objects/machinedeployment-failing.yaml")
	require.Equal(t, cli.Failed, status, "it is paused")
	require.Equal(t, "Paused", d.Decision.Reason)
}

func TestFrames_Machines_AddUp(t *testing.T) {
	for _, args := range [][]string{
		{"-f", pool}, {"-f", pool, "--fail=0.3"}, {"-f", pool, "--quota=6"}, {"-f", pool, "--at=2m=replicas:2", "--at=4m=class:third"},
		{"-f", edited(t, "type: RollingUpdate", "type: Recreate")},
	} {
		_, d := document(t, args...)
		require.True(t, d.Frames[0].Before)
		after := time.Duration(-1)
		for i, f := range d.Frames[1:] {
			require.Greater(t, f.After.Duration, after, "one frame for each time")
			after = f.After.Duration
			available, machines, newest := 0, 0, 0
			for _, s := range f.Sets {
				available, machines = available+s.Machines["available"], machines+s.Machines.All()
				if s.New {
					newest++
				}
			}
			require.Equal(t, f.Available, available, "frame %d of %v", i, args)
			require.GreaterOrEqual(t, f.Total, machines, "frame %d of %v", i, args)
			require.LessOrEqual(t, newest, 1)
		}
	}
}

func TestRollout_NoEventAgainstBounds_BoundsKept(t *testing.T) {
	for _, args := range [][]string{
		{"--join=1m", "--leave=5m"}, {"--join=5m", "--leave=0s"}, {"--join=0s", "--leave=0s"}, {"--never"}, {"--quota=6"}, {"--quota=5"},
		{"--at=2m=pause", "--at=20m=resume"}, {"--at=4m=class:third"}, {"--at=4m=rollback"}, {"--no-cluster"},
	} {
		_, d := document(t, append([]string{"-f", pool}, args...)...)
		require.LessOrEqual(t, d.Summary.AboveMaximum, 0, args)
		require.LessOrEqual(t, d.Summary.BelowMinimum, 0, args)
	}
}

func TestEvents_Impossible_ShowTheError(t *testing.T) {
	status, d := document(t, "-f", pool, "--at=1m=delete:none", "--at=1m=select:none")
	require.Equal(t, cli.Done, status)
	require.Equal(t, []string{"delete:none (machine not found)", "select:none (machine not found)"}, d.Frames[2].Events)
	_, d = document(t, "-f", edited(t, "type: RollingUpdate", "type: Recreate"), "--at=0s=surge:1")
	require.Contains(t, strings.Join(d.Frames[1].Events, " "), "the strategy has no bounds")
}

func TestFail_Seed_SelectsMachines(t *testing.T) {
	created := map[int]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6"} {
		_, d := document(t, "-f", pool, "--fail=0.5", "--seed="+seed)
		_, again := document(t, "-f", pool, "--fail=0.5", "--seed="+seed)
		require.Equal(t, d, again)
		created[d.Summary.Created] = true
	}
	require.Greater(t, len(created), 1, "seeds make a difference")
	status, d := document(t, "-f", pool, "--fail=1", "--for=2h")
	require.Equal(t, cli.Failed, status)
	require.Equal(t, simulation.OutcomeUnfinished, d.Outcome, "failed machines are replaced forever")
}

func TestEvents_Documented(t *testing.T) {
	_, usage, _ := run(t, "--help")
	for _, kind := range simulation.EventKinds {
		require.Contains(t, usage, kind)
	}
}

func TestDocument_JSON_StableNames(t *testing.T) {
	_, out, _ := run(t, "-f", pool, "-o=json", "--at=1m=pause")
	var d map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, "rollout.machinist.dev/v1alpha1", d["apiVersion"])
	require.Equal(t, "Rollout", d["kind"])
	for _, key := range []string{"deployment", "strategy", "change", "start", "outcome", "decision", "summary", "frames"} {
		require.Contains(t, d, key)
	}
}

// BenchmarkRollout measures rollouts of many machines and of many steps. Each should take less than
// 2 s.
func BenchmarkRollout(b *testing.B) {
	data, err := os.ReadFile(pool)
	require.NoError(b, err)
	for _, c := range []struct{ name, replicas, surge string }{
		{"machines=5000/surge=10", "5000", "10%"},
		{"machines=5000/surge=25", "5000", "25%"},
		{"machines=1000/one-by-one", "1000", "1"},
	} {
		file := filepath.Join(b.TempDir(), "pool.yaml")
		text := strings.NewReplacer("replicas: 5", "replicas: "+c.replicas, "maxSurge: 2", "maxSurge: "+c.surge, "maxUnavailable: 1", "maxUnavailable: 0").Replace(string(data))
		require.NoError(b, os.WriteFile(file, []byte(text), 0o600))
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				e := cli.New(nil, io.Discard, io.Discard)
				require.Equal(b, cli.Done, e.Run(b.Context(), simulation.New(e), []string{"-f", file, "--for=1000h"}))
			}
		})
	}
}
