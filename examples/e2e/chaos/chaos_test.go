// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchedule_AnySeed_HasEveryFault(t *testing.T) {
	for seed := range uint64(20) {
		injected := map[fault]int{}
		for _, s := range schedule(seed) {
			injected[s.fault]++
			require.Positive(t, s.changes)
			require.Positive(t, s.resumeAfter)
		}
		require.Equal(t, wanted(), injected)
		require.Equal(t, schedule(seed), schedule(seed))
	}
	require.NotEqual(t, schedule(1), schedule(2))
}

// passed returns the report of a run without a violation.
func passed() *report {
	r := &report{seed: 7, injected: wanted(), rollouts: 3}
	for range checks {
		r.judge("a check", nil)
	}
	return r
}

func TestReport_Complete_Passes(t *testing.T) {
	var out bytes.Buffer
	r := passed()
	r.print(&out)
	require.True(t, r.ok(), "%s", out.String())
	require.Contains(t, out.String(), "API server killed        10 of 10 times\n")
	require.NotContains(t, out.String(), "NO")
}

func TestReport_AnythingMissingOrWrong_Fails(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*report)
		want string
	}{
		"a fault was not injected": {func(r *report) { r.injected[etcdKilled]-- }, "4 of 5 times"},
		"a check failed":           {func(r *report) { r.checks[2].err = errors.New("2 VMs are left\nand more") }, "NO: 2 VMs are left\n"},
		"a check was not made":     {func(r *report) { r.checks = r.checks[1:] }, "not checked"},
		"no rollout was completed": {func(r *report) { r.rollouts = 0 }, "rollouts completed       0\n"},
	} {
		var out bytes.Buffer
		r := passed()
		c.edit(r)
		r.print(&out)
		require.False(t, r.ok(), name)
		require.Contains(t, out.String(), c.want)
	}
}

func TestChaos_UnknownArguments_Status2(t *testing.T) {
	for _, args := range [][]string{{"-seed", "x"}, {"again"}, {"-kills", "1"}} {
		var out, errOut bytes.Buffer
		require.Equal(t, 2, chaos(t.Context(), args, &out, &errOut))
		require.NotEmpty(t, errOut.String())
	}
}
