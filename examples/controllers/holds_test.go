// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
)

func TestHolds_SameHold_KeepsItsBeginAndIsStuckOnce(t *testing.T) {
	var h holds
	now, m := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), cache.NewObjectName("ns", "m")
	join := machinist.Hold{Subject: "node/n", Reason: "WaitingForNode"}

	stuck, next := h.set("machine", m, now, []machinist.Hold{join})
	require.Empty(t, stuck)
	require.Equal(t, now.Add(stuckAfter), next)

	join.Message = "other words" // are the same hold
	stuck, next = h.set("machine", m, now.Add(stuckAfter-1), []machinist.Hold{join})
	require.Empty(t, stuck)
	require.Equal(t, now.Add(stuckAfter), next)

	stuck, next = h.set("machine", m, now.Add(stuckAfter), []machinist.Hold{join})
	require.Len(t, stuck, 1)
	require.Equal(t, now, stuck[0].Since)
	require.Zero(t, next)

	other := machinist.Hold{Subject: "pod/ns/p", Reason: "BudgetExhausted"}
	stuck, next = h.set("machine", m, now.Add(2*stuckAfter), []machinist.Hold{join, other})
	require.Empty(t, stuck, "it was reported")
	require.Equal(t, now.Add(3*stuckAfter), next, "that of the other hold")
	require.Len(t, h.list(), 2)

	h.set("machine", m, now.Add(2*stuckAfter), nil)
	require.Empty(t, h.list())
	stuck, _ = h.set("machine", m, now.Add(3*stuckAfter), []machinist.Hold{join})
	require.Empty(t, stuck, "it began anew")
	h.forget("machine", m)
	require.Empty(t, h.list())
}

func TestHolds_SinceOfTheDecision_Counts(t *testing.T) {
	var h holds
	now, m := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), cache.NewObjectName("ns", "m")
	stuck, _ := h.set("machine", m, now, []machinist.Hold{{Subject: "a", Since: now.Add(-time.Hour)}, {Subject: "b", Since: now.Add(time.Hour)}})
	require.Len(t, stuck, 1)
	require.Equal(t, "a", stuck[0].Subject)
	for _, held := range h.list() {
		require.False(t, held.Hold.Since.After(now), "a time in the future counts as now")
	}
}
