// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machineset"
)

func TestHolds_SameHold_KeepsSinceAndIsReportedOnce(t *testing.T) {
	var h holds
	now, m := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), cache.NewObjectName("ns", "m")
	join := machinist.Hold{Subject: "node/n", Reason: "WaitingForNode"}

	stuck, next := h.set("machine", m, now, []machinist.Hold{join}, nil)
	require.Empty(t, stuck)
	require.Equal(t, now.Add(stuckAfter), next)

	join.Message = "other words" // are the same hold
	stuck, next = h.set("machine", m, now.Add(stuckAfter-1), []machinist.Hold{join}, nil)
	require.Empty(t, stuck)
	require.Equal(t, now.Add(stuckAfter), next)

	stuck, next = h.set("machine", m, now.Add(stuckAfter), []machinist.Hold{join}, nil)
	require.Len(t, stuck, 1)
	require.Equal(t, now, stuck[0].Since)
	require.Zero(t, next)

	other := machinist.Hold{Subject: "pod/ns/p", Reason: "BudgetExhausted"}
	stuck, next = h.set("machine", m, now.Add(2*stuckAfter), []machinist.Hold{join, other}, nil)
	require.Empty(t, stuck, "it was reported")
	require.Equal(t, now.Add(3*stuckAfter), next, "the time of the other hold")
	require.Len(t, h.list(), 2)

	h.set("machine", m, now.Add(2*stuckAfter), nil, nil)
	require.Empty(t, h.list())
	stuck, _ = h.set("machine", m, now.Add(3*stuckAfter), []machinist.Hold{join}, nil)
	require.Empty(t, stuck, "the wait began again")
	h.forget("machine", m)
	require.Empty(t, h.list())
}

func TestHolds_SinceOfTheDecision_Counts(t *testing.T) {
	var h holds
	now, m := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), cache.NewObjectName("ns", "m")
	stuck, _ := h.set("machine", m, now, []machinist.Hold{{Subject: "a", Since: now.Add(-time.Hour)}, {Subject: "b", Since: now.Add(time.Hour)}}, nil)
	require.Len(t, stuck, 1)
	require.Equal(t, "a", stuck[0].Subject)
	for _, held := range h.list() {
		require.False(t, held.Hold.Since.After(now), "a time in the future counts as now")
	}
}

func TestHolds_PausedOrTimedHold_IsNotStuck(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	begin := now.Add(-time.Hour)
	for name, tc := range map[string]struct {
		hold     machinist.Hold
		progress time.Time
		want     time.Time
	}{
		"never any progress":     {machinist.Hold{Since: begin}, time.Time{}, begin},
		"progress before":        {machinist.Hold{Since: begin}, begin.Add(-time.Hour), begin},
		"progress since":         {machinist.Hold{Since: begin}, begin.Add(time.Minute), begin.Add(time.Minute)},
		"progress to come":       {machinist.Hold{Since: begin}, now.Add(time.Minute), begin},
		"ends at a known time":   {machinist.Hold{Since: begin, Until: now.Add(time.Minute)}, time.Time{}, time.Time{}},
		"should have ended":      {machinist.Hold{Since: begin, Until: now.Add(-time.Minute)}, time.Time{}, begin},
		"paused by a user":       {machinist.Hold{Since: begin, Reason: deployment.ReasonPaused}, time.Time{}, time.Time{}},
		"refused, as it says":    {machinist.Hold{Since: begin, Reason: machineset.ReasonInvalid}, time.Time{}, time.Time{}},
		"preserved by its owner": {machinist.Hold{Since: begin, Reason: machineset.ReasonPreserved}, time.Time{}, time.Time{}},
	} {
		require.Equal(t, tc.want, sinceProgress(tc.progress, now)(tc.hold), name)
	}
	var h holds
	d := cache.NewObjectName("ns", "d")
	paused := []machinist.Hold{{Subject: "d", Reason: deployment.ReasonPaused}}
	stuck, _ := h.set("machinedeployment", d, begin, paused, sinceProgress(time.Time{}, begin))
	require.Empty(t, stuck)
	stuck, next := h.set("machinedeployment", d, now, paused, sinceProgress(time.Time{}, now))
	require.Empty(t, stuck)
	require.Zero(t, next)
	require.Len(t, h.list(), 1, "a metric shows it")
}
