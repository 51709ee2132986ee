// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
)

func TestSpan_Durations_AreShort(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "90ms": 90 * time.Millisecond, "10s": 10 * time.Second, "1m": time.Minute, "1m10s": 70 * time.Second, "10m": 10 * time.Minute,
		"1h": time.Hour, "1h30m": 90 * time.Minute, "1h0m10s": time.Hour + 10*time.Second, "20h": 20 * time.Hour,
		"48h0m10s": 48*time.Hour + 10*time.Second, "-1m": -time.Minute,
	} {
		require.Equal(t, want, simulation.Span(d))
	}
}

func TestMarks_AnyEnd_FewRoundNumbers(t *testing.T) {
	for end := time.Second; end < 400*24*time.Hour; end += end/7 + 1 {
		marks := simulation.TimeMarks(end, 12)
		require.LessOrEqual(t, len(marks), 13, end)
		require.GreaterOrEqual(t, len(marks), 2, end)
		require.Zero(t, marks[0])
		require.LessOrEqual(t, marks[len(marks)-1], end)
	}
	for end := 1; end < 1_000_000; end += end/7 + 1 {
		marks := simulation.NumberMarks(end, 8)
		require.LessOrEqual(t, len(marks), 9, end)
		require.GreaterOrEqual(t, len(marks), 2, end)
		require.LessOrEqual(t, marks[len(marks)-1], end)
	}
	require.Equal(t, []int{0, 1, 2, 3}, simulation.NumberMarks(3, 8))
	require.Equal(t, []int{0, 2, 4, 6, 8, 10}, simulation.NumberMarks(11, 8))
}
