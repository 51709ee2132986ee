// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
)

func TestDrainView_After_KeepsTimes(t *testing.T) {
	drainOf := func(started, forceAt time.Time) machine.DrainNode {
		return machine.DrainNode{NodeName: "n", Started: started, Policy: drain.ForMachine(forceAt)}
	}
	hourAgo, a := now.Add(-time.Hour), drainOf(now.Add(-time.Hour), now)
	done := machine.DrainView{Done: true}
	var v machine.DrainView

	v = v.AfterRound(a, machine.DrainView{NextCheck: now}, now.Add(-time.Minute))
	require.Equal(t, machine.DrainView{Started: hourAgo, ForceAt: now, Round: now.Add(-time.Minute), NextCheck: now}, v)
	v = v.Again().AfterRound(a, done, now.Add(-30*time.Second))
	require.Equal(t, now.Add(-30*time.Second), v.DoneAt)
	require.Zero(t, v.ForcedAt, "before the time of force")
	v = v.Again().AfterRound(a, machine.DrainView{}, now)
	v = v.Again().AfterRound(a, done, now.Add(time.Second))
	require.Equal(t, machine.DrainView{
		Started: hourAgo, ForceAt: now, Round: now.Add(time.Second), Done: true, DoneAt: now.Add(-30 * time.Second), ForcedAt: now,
	}, v, "the first times are kept")
	require.Equal(t, machine.DrainView{Started: hourAgo, ForceAt: now, DoneAt: v.DoneAt, ForcedAt: now}, v.Again())

	require.Equal(t, machine.DrainView{Started: now, Round: now}, v.AfterRound(drainOf(now, time.Time{}), machine.DrainView{}, now), "another drain")
	kept := a
	kept.Policy.KeepSchedulable = true
	require.Zero(t, v.AfterRound(kept, machine.DrainView{}, now.Add(-time.Second)).DoneAt, "another drain with the same start, without cordon")
	require.Zero(t, v.AfterRound(drainOf(hourAgo, now.Add(time.Hour)), machine.DrainView{}, now).ForcedAt, "another drain with another time of force")
}
