// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
)

const stuckAfter = 5 * time.Minute

func TestWaits_SameHold_KeepsSinceAndIsStuckOnce(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	join := machinist.Hold{Subject: "node/n", Reason: "WaitingForNode"}

	w, stuck, next := machinist.Waits{}.Step([]machinist.Hold{join}, nil, now)
	require.Empty(t, stuck)
	require.Equal(t, now.Add(stuckAfter), next)

	join.Message = "other words" // are the same hold
	w, stuck, next = w.Step([]machinist.Hold{join}, nil, now.Add(stuckAfter-1))
	require.Empty(t, stuck)
	require.Equal(t, now.Add(stuckAfter), next)

	w, stuck, next = w.Step([]machinist.Hold{join}, nil, now.Add(stuckAfter))
	require.Len(t, stuck, 1)
	require.Equal(t, now, stuck[0].Since)
	require.Zero(t, next)

	other := machinist.Hold{Subject: "pod/ns/p", Reason: "BudgetExhausted"}
	w, stuck, next = w.Step([]machinist.Hold{join, other}, nil, now.Add(2*stuckAfter))
	require.Empty(t, stuck, "it was returned")
	require.Equal(t, now.Add(3*stuckAfter), next, "the time of the other hold")
	require.Len(t, w.Holds(), 2)

	w, _, _ = w.Step(nil, nil, now.Add(2*stuckAfter))
	require.Empty(t, w.Holds())
	_, stuck, _ = w.Step([]machinist.Hold{join}, nil, now.Add(3*stuckAfter))
	require.Empty(t, stuck, "the wait began again")
}

func TestWaits_SinceOfTheDecision_Counts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w, stuck, _ := machinist.Waits{}.Step([]machinist.Hold{{Subject: "a", Since: now.Add(-time.Hour)}, {Subject: "b", Since: now.Add(time.Hour)}}, nil, now)
	require.Len(t, stuck, 1)
	require.Equal(t, "a", stuck[0].Subject)
	for _, h := range w.Holds() {
		require.False(t, h.Since.After(now), "a time in the future counts as now")
	}
	never := func(machinist.Hold) time.Time { return time.Time{} }
	_, stuck, next := w.Step([]machinist.Hold{{Subject: "b"}}, never, now.Add(time.Hour))
	require.Empty(t, stuck)
	require.Zero(t, next)
}

// A controller reports a hold that lasts.
func ExampleWaits() {
	var waits machinist.Waits
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range 3 {
		next, stuck, _ := waits.Step([]machinist.Hold{{Subject: "node/worker-1", Reason: "WaitingForNode"}}, nil, now)
		fmt.Println(now.Format(time.TimeOnly), stuck)
		waits, now = next, now.Add(3*time.Minute)
	}
	// Output:
	// 12:00:00 []
	// 12:03:00 []
	// 12:06:00 [node/worker-1: WaitingForNode]
}
