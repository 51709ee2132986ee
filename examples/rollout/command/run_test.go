// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/rollout/command"
)

func TestSmallRolloutsReadAsTablesAndPictures(t *testing.T) {
	inPlace := edited(t, "RollingUpdate", "InPlaceUpdate", "rollingUpdate:", "inPlaceUpdate:\n      orchestrationType: Auto")
	for _, c := range []struct {
		name   string
		args   []string
		status int
	}{
		{"rolling", []string{"-f", pool, "--at=4m=replicas:7"}, command.Done},
		{"in-place", []string{"-f", inPlace}, command.Done},
		{"stopped", []string{"-f", pool, "--never", "--at=10m=surge:3"}, command.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := run(t, c.args...)
			require.Equal(t, c.status, status, errOut)
			golden(t, c.name+"-table", out)
			_, out, _ = run(t, append(c.args, "-o=svg")...)
			golden(t, c.name+"-svg", out)
			_, out, _ = run(t, append(c.args, "-o=svg")...)
			golden(t, c.name+"-svg", out) // the same once more
		})
	}
}

func TestTheExitStatusSaysHowItEnded(t *testing.T) {
	empty := edited(t, "matchLabels:\n      name: pool", "matchLabels: {}")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"help", []string{"-h"}, command.Done, ""},
		{"complete", []string{"-f", pool}, command.Done, ""},
		{"nothing to do", []string{"-f", pool, "--class=small"}, command.Done, ""},
		{"new machines that never come", []string{"-f", pool, "--never"}, command.Failed, "stopped after 31m1s: SurgeUsedUp, MinimumAvailable, NewMachinesUnavailable, ProgressDeadlineExceeded"},
		{"and are rolled back", []string{"-f", pool, "--never", "--at=1h=rollback"}, command.Done, ""},
		{"paused and never resumed", []string{"-f", pool, "--at=2m=pause"}, command.Failed, "stopped after 4m: Paused"},
		{"paused and resumed", []string{"-f", pool, "--at=2m=pause", "--at=12m=resume"}, command.Done, ""},
		{"not over in time", []string{"-f", pool, "--for=5m"}, command.Failed, "not over after 5m: "},
		{"selected by nobody", []string{"-f", pool, "--by-label"}, command.Failed, "Gate"},
		{"no file", []string{"-f", "testdata/none.yaml"}, command.Refused, "none.yaml"},
		{"a deployment that never comes up", []string{"-f", empty}, command.Refused, "EmptySelector"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := run(t, c.args...)
			require.Equal(t, c.status, status, errOut)
			require.Contains(t, errOut, c.says)
			require.Equal(t, c.says == "", errOut == "", errOut)
			require.Equal(t, status == command.Refused, out == "", "something is shown if it was played")
			require.LessOrEqual(t, strings.Count(errOut, "\n"), 1, "an error is a line")
		})
	}
}

func TestAnInterruptionEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errOut strings.Builder
	require.Equal(t, command.Failed, command.Command{ErrOut: &errOut}.Run(ctx, []string{"-f", pool}))
	require.Contains(t, errOut.String(), "interrupted")
}

func TestAWriterThatFailsIsAnError(t *testing.T) {
	for _, form := range []string{"table", "wide", "json", "svg", "summary"} {
		var errOut strings.Builder
		c := command.Command{Out: broken{}, ErrOut: &errOut}
		require.Equal(t, command.Failed, c.Run(t.Context(), []string{"-f", pool, "-o", form}), form)
		require.Contains(t, errOut.String(), "disk full", form)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTheFileMayComeFromStandardInput(t *testing.T) {
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	status, out, errOut := runWith(t, string(data), "-f", "-", "-o", "summary")
	require.Equal(t, command.Done, status, errOut)
	require.Contains(t, out, "class small -> small-next")
	require.Contains(t, out, "complete after 8m")
}

func TestAnotherSpecIsRolledOutTo(t *testing.T) {
	to := edited(t, "name: small", "name: large", "replicas: 5", "replicas: 6", "maxSurge: 2", "maxSurge: 50%")
	status, d := document(t, "-f", pool, "--to", to)
	require.Equal(t, command.Done, status)
	require.Equal(t, "5 machines -> 6 machines, class small -> large, RollingUpdate (surge 2, unavailable 1) -> RollingUpdate (surge 50%, unavailable 1)", d.Change)
	last := d.Frames[len(d.Frames)-1]
	require.Equal(t, 6, last.Available)
	require.Equal(t, 9, last.Cap)

	other := edited(t, "name: pool", "name: other")
	status, _, errOut := run(t, "-f", pool, "--to", other)
	require.Equal(t, command.Refused, status)
	require.Contains(t, errOut, "is other, not pool")
}

func TestAStoredDeploymentIsPlayedAsItsSpecSays(t *testing.T) {
	status, d := document(t, "-f", "../../../machine/v1alpha1/testdata/objects/machinedeployment-aws.yaml")
	require.Equal(t, command.Done, status)
	settles := 0
	for _, f := range d.Frames {
		for _, s := range f.Sets {
			settles = max(settles, s.Machines.Settling)
		}
	}
	require.Equal(t, 1, settles, "minReadySeconds is 500")
	require.GreaterOrEqual(t, d.Summary.Duration.Duration, 500*time.Second)
	require.LessOrEqual(t, d.Summary.MostBelowFloor, 0)

	status, d = document(t, "-f", "../../../machine/v1alpha1/testdata/objects/machinedeployment-failing.yaml")
	require.Equal(t, command.Failed, status, "it is paused")
	require.Equal(t, "Paused", d.Reason)
}

func TestEveryFrameAddsUp(t *testing.T) {
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
				available, machines = available+s.Machines.Available, machines+s.Machines.All()
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

func TestBoundsAreKeptUnlessSomebodyElseBreaksThem(t *testing.T) {
	for _, args := range [][]string{
		{"--join=1m", "--leave=5m"}, {"--join=5m", "--leave=0s"}, {"--join=0s", "--leave=0s"}, {"--never"}, {"--quota=6"}, {"--quota=5"},
		{"--at=2m=pause", "--at=20m=resume"}, {"--at=4m=class:third"}, {"--at=4m=rollback"}, {"--no-cluster"},
	} {
		_, d := document(t, append([]string{"-f", pool}, args...)...)
		require.LessOrEqual(t, d.Summary.MostAboveCap, 0, args)
		require.LessOrEqual(t, d.Summary.MostBelowFloor, 0, args)
	}
}

func TestWhatCannotHappenIsSaidInItsPlace(t *testing.T) {
	status, d := document(t, "-f", pool, "--at=1m=delete:nobody", "--at=1m=select:nobody")
	require.Equal(t, command.Done, status)
	require.Equal(t, []string{"delete:nobody (there is no such machine)", "select:nobody (there is no such machine)"}, d.Frames[2].Events)
	_, d = document(t, "-f", edited(t, "type: RollingUpdate", "type: Recreate"), "--at=0s=surge:1")
	require.Contains(t, strings.Join(d.Frames[1].Events, " "), "the strategy has no bounds")
}

func TestASeedSaysWhichMachinesFail(t *testing.T) {
	created := map[int]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6"} {
		_, d := document(t, "-f", pool, "--fail=0.5", "--seed="+seed)
		_, again := document(t, "-f", pool, "--fail=0.5", "--seed="+seed)
		require.Equal(t, d, again)
		created[d.Summary.Created] = true
	}
	require.Greater(t, len(created), 1, "seeds make a difference")
	status, d := document(t, "-f", pool, "--fail=1", "--for=2h")
	require.Equal(t, command.Failed, status)
	require.Equal(t, command.OutcomeUnfinished, d.Outcome, "they are replaced for ever")
}

func TestTheDocumentationNamesEveryEvent(t *testing.T) {
	_, usage, _ := run(t, "--help")
	page, err := os.ReadFile(filepath.Join("..", "doc.go"))
	require.NoError(t, err)
	for _, kind := range command.EventKinds {
		require.Contains(t, usage, string(kind))
		require.Contains(t, string(page), string(kind))
	}
}

func TestTheDocumentKeepsItsNames(t *testing.T) {
	_, out, _ := run(t, "-f", pool, "-o=json", "--at=1m=pause")
	var d map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, "rollout.machinist.dev/v1alpha1", d["apiVersion"])
	require.Equal(t, "Rollout", d["kind"])
	for _, key := range []string{"deployment", "strategy", "change", "outcome", "reason", "holds", "summary", "frames"} {
		require.Contains(t, d, key)
	}
}

// A roll-out of 5,000 machines is to take less than 2 s, and so is one of 1,000 of which one at a
// time is replaced: the work grows with the machines, and with the steps.
func BenchmarkRollOut(b *testing.B) {
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
				require.Equal(b, command.Done, command.Command{}.Run(b.Context(), []string{"-f", file, "--for=1000h"}))
			}
		})
	}
}
