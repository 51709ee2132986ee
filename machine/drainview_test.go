// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine"
)

func TestAViewOfADrainRemembersSinceWhen(t *testing.T) {
	t.Parallel()
	mode := machine.DrainMode{Started: now.Add(-time.Hour), ForceAt: now}
	done := machine.DrainView{Done: true}
	var v machine.DrainView

	v = v.AfterRound(machine.DrainOf(mode), machine.DrainView{NextCheck: now}, now.Add(-time.Minute))
	require.Equal(t, machine.DrainView{Started: mode.Started, ForceAt: now, Round: now.Add(-time.Minute), NextCheck: now}, v)
	v = v.Again().AfterRound(machine.DrainOf(mode), done, now.Add(-30*time.Second))
	require.Equal(t, now.Add(-30*time.Second), v.DoneAt)
	require.Zero(t, v.ForcedAt, "not yet")
	v = v.Again().AfterRound(machine.DrainOf(mode), machine.DrainView{}, now)
	require.Equal(t, now.Add(-30*time.Second), v.DoneAt, "the first time counts")
	require.Equal(t, now, v.ForcedAt)
	v = v.Again().AfterRound(machine.DrainOf(mode), done, now.Add(time.Second))
	require.Equal(t, machine.DrainView{
		Started: mode.Started, ForceAt: now, Round: now.Add(time.Second), Done: true, DoneAt: now.Add(-30 * time.Second), ForcedAt: now,
	}, v)
	require.Equal(t, machine.DrainView{Started: mode.Started, ForceAt: now, DoneAt: v.DoneAt, ForcedAt: now}, v.Again())

	other := machine.DrainMode{Started: now}
	require.Equal(t, machine.DrainView{Started: now, Round: now}, v.AfterRound(machine.DrainOf(other), machine.DrainView{}, now), "another drain begins anew")
	kept, patient := mode, mode
	kept.KeepSchedulable = true
	require.Zero(t, v.AfterRound(machine.DrainOf(kept), machine.DrainView{}, now.Add(-time.Second)).DoneAt, "also one of the same second that does not cordon")
	patient.ForceAt = now.Add(time.Hour)
	require.Zero(t, v.AfterRound(machine.DrainOf(patient), machine.DrainView{}, now.Add(time.Second)).ForcedAt, "and one with another time of force")
}

// A round in each pass, which forgets what the last one saw, ends like one whose view
// is kept.
func TestADrainWithARoundInEveryPassEnds(t *testing.T) {
	t.Parallel()
	x := newWorld(terminating(node(marked), attached("csi-1")))
	x.rounds, x.anew = 3, true
	require.Equal(t, stepRelease, x.run(t).did[len(x.did)-1])
	require.Equal(t, now.Add(40*time.Second+2*time.Minute), x.now, "the detach timeout counts from the first time")
}
