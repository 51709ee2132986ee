// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist/safety"
)

var (
	freezeStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	errDown     = errors.New("connection refused")
)

// probes returns the probes of both servers.
func probes(control, target bool) []safety.Probe {
	out := []safety.Probe{{Server: "control"}, {Server: "target"}}
	for i, up := range []bool{control, target} {
		if !up {
			out[i].Err = errDown
		}
	}
	return out
}

func TestAnswered_EachError(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for _, err := range []error{
		nil, apierrors.NewNotFound(nodes, "a"), apierrors.NewForbidden(nodes, "a", errDown), apierrors.NewUnauthorized("no token"),
	} {
		require.True(t, safety.Answered(err), "%v", err)
	}
	for _, err := range []error{
		errDown, context.DeadlineExceeded, apierrors.NewTooManyRequests("later", 1), apierrors.NewInternalError(errDown),
		apierrors.NewServiceUnavailable("no"), apierrors.NewTimeoutError("late", 1),
	} {
		require.False(t, safety.Answered(err), "%v", err)
	}
}

// probing runs StepFreeze at each NextCheck with one probe of each server.
type probing struct {
	state safety.FreezeState
	last  safety.FreezeDecision
	now   time.Time
}

func (p *probing) probe(control, target bool) safety.FreezeDecision {
	p.state, p.last = safety.StepFreeze(p.state, probes(control, target), safety.FreezePolicy{}, p.now)
	return p.last
}

// until probes until a time and returns the begin of the first freeze. Zero means none.
func (p *probing) until(end time.Time, control, target bool) (frozen time.Time) {
	for ; p.now.Before(end); p.now = p.last.NextCheck {
		if d := p.probe(control, target); d.Freeze.Frozen && frozen.IsZero() {
			frozen = p.now
		}
	}
	return frozen
}

func TestStepFreeze_OutageOfEachServer_FreezesAfterTimeout(t *testing.T) {
	for name, up := range map[string][2]bool{"control": {false, true}, "target": {true, false}, "both": {}} {
		p := probing{now: freezeStart}
		require.Zero(t, p.until(freezeStart.Add(10*time.Minute), true, true), name)
		began := p.now
		frozen := p.until(began.Add(3*time.Minute), up[0], up[1])
		require.False(t, frozen.IsZero(), name)
		require.GreaterOrEqual(t, frozen.Sub(began), 30*time.Second, name)
		require.LessOrEqual(t, frozen.Sub(began), 36*time.Second, name)
		require.Equal(t, began, p.last.Freeze.Since, name)
		require.Contains(t, p.last.Freeze.Message, "connection refused", name)
		d := p.probe(true, true)
		require.True(t, d.Ended && !d.Freeze.Frozen, name)
		require.Equal(t, p.now, d.Freeze.ClocksFrom, name)
	}
}

// TestStepFreeze_NextCheck_FiveProbesInTheTimeoutOfAFailure checks the time of the next probe.
func TestStepFreeze_NextCheck_FiveProbesInTheTimeoutOfAFailure(t *testing.T) {
	p := probing{now: freezeStart}
	require.Equal(t, p.now.Add(6*time.Second), p.probe(true, false).NextCheck, "nothing is known")
	require.Equal(t, p.now.Add(time.Minute), p.probe(true, true).NextCheck, "all answer")
	p.now = p.now.Add(time.Minute)
	require.Equal(t, p.now.Add(6*time.Second), p.probe(true, false).NextCheck, "one fails")
	p.now = p.now.Add(30 * time.Second)
	d := p.probe(true, false)
	require.True(t, d.Freeze.Frozen)
	require.Equal(t, p.now.Add(6*time.Second), d.NextCheck, "frozen")
}

func TestStepFreeze_RecoveryBeforeTimeout_CountBeginsAnew(t *testing.T) {
	p := probing{now: freezeStart}
	p.probe(true, true)
	for range 20 { // every failure is followed by an answer
		p.now = p.now.Add(25 * time.Second)
		require.False(t, p.probe(true, false).Freeze.Frozen)
		p.now = p.now.Add(25 * time.Second)
		require.False(t, p.probe(true, true).Freeze.Frozen)
	}
	require.Equal(t, freezeStart, p.last.Freeze.ClocksFrom)
}

func TestStepFreeze_ZeroState_FrozenUntilAllAnswered(t *testing.T) {
	p := probing{now: freezeStart}
	_, d := safety.StepFreeze(safety.FreezeState{}, nil, safety.FreezePolicy{}, p.now)
	require.True(t, d.Freeze.Frozen, "nothing was probed")
	require.True(t, p.probe(true, false).Freeze.Frozen)
	require.True(t, p.last.Began)
	p.now = p.now.Add(time.Hour)
	require.True(t, p.probe(false, true).Freeze.Frozen)
	d = p.probe(true, true)
	require.False(t, d.Freeze.Frozen)
	require.Equal(t, p.now, d.Freeze.ClocksFrom)
}

func TestStepFreeze_GapBetweenSteps_ClocksBeginAnew(t *testing.T) {
	p := probing{now: freezeStart}
	p.probe(true, true)
	p.now = p.now.Add(150 * time.Second)
	require.Equal(t, freezeStart, p.probe(true, true).Freeze.ClocksFrom, "as long as two periods and a timeout")
	p.now = p.now.Add(151 * time.Second)
	require.Equal(t, p.now, p.probe(true, true).Freeze.ClocksFrom)
}

func TestStepFreeze_ClockSetBackDuringOutage_FreezesAfterTimeout(t *testing.T) {
	p := probing{now: freezeStart}
	p.probe(true, true)
	p.now = p.now.Add(time.Minute)
	p.probe(true, false)
	p.now = p.now.Add(-time.Hour)
	frozen := p.until(p.now.Add(10*time.Minute), true, false)
	require.Equal(t, freezeStart.Add(time.Minute-time.Hour+30*time.Second), frozen)
	require.False(t, p.probe(true, true).Freeze.Frozen)
}

// TestStepFreeze_AnySchedule_Laws steps through random outages, pauses and changes of the
// clock:
//
//   - there is no freeze if all servers answer,
//   - a freeze needs a failure for the timeout, or the zero state,
//   - ClocksFrom is never before the last step that was frozen, and never after now,
//   - the next probe is due soon, and the state survives JSON.
func TestStepFreeze_AnySchedule_Laws(t *testing.T) {
	frozen := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := probing{now: freezeStart}
		since := map[int]time.Time{}
		var lastFrozen, lastStep time.Time
		control, target := true, true
		for range 60 {
			if r.IntN(4) == 0 {
				control = !control
			}
			if r.IntN(4) == 0 {
				target = !target
			}
			before, memory := p.state, toJSON(t, p.state)
			d := p.probe(control, target)
			require.Equal(t, memory, toJSON(t, before), "the argument is not changed")
			for i, up := range []bool{control, target} {
				switch {
				case up:
					delete(since, i)
				case since[i].IsZero() || since[i].After(p.now):
					since[i] = p.now
				}
			}
			late := lastStep.IsZero() || p.now.Sub(lastStep) > 150*time.Second
			for _, s := range since {
				late = late || p.now.Sub(s) >= 30*time.Second
			}
			if d.Freeze.Frozen {
				frozen++
				require.True(t, late || !lastFrozen.IsZero(), "seed %d: frozen without cause", seed)
				require.False(t, control && target, "seed %d: frozen although all servers answer", seed)
				require.False(t, d.Freeze.Since.IsZero() || d.Freeze.Since.After(p.now), "seed %d", seed)
				require.True(t, d.Freeze.ClocksFrom.IsZero())
				lastFrozen = p.now
			} else {
				require.False(t, d.Freeze.ClocksFrom.IsZero() || d.Freeze.ClocksFrom.After(p.now), "seed %d", seed)
				if !lastFrozen.IsZero() {
					require.False(t, d.Freeze.ClocksFrom.Before(lastFrozen), "seed %d: clocks count from a time of the freeze", seed)
				}
			}
			require.True(t, d.NextCheck.After(p.now))
			var stored safety.FreezeState
			require.NoError(t, json.Unmarshal([]byte(toJSON(t, p.state)), &stored))
			require.Equal(t, d.Freeze.ClocksFrom.IsZero(), stored.ClocksFrom.IsZero())
			lastStep = p.now
			switch r.IntN(12) {
			case 0:
				p.now = p.now.Add(time.Duration(r.IntN(600)) * time.Second)
			case 1: // the clock is set back: what was later counts as now
				p.now = p.now.Add(-time.Duration(r.IntN(600)) * time.Second)
				lastFrozen = time.Time{}
				lastStep = time.Time{}
			default:
				p.now = d.NextCheck
			}
		}
		p.now = p.now.Add(time.Second)
		require.False(t, p.probe(true, true).Freeze.Frozen, "seed %d", seed)
	}
	require.Greater(t, frozen, 10000)
}

// TestStepFreeze_MoreProbes_SameFreeze probes more often than NextCheck. The
// freeze begins and ends at the same times.
func TestStepFreeze_MoreProbes_SameFreeze(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second} {
		var state safety.FreezeState
		var began, ended time.Time
		for at := freezeStart; at.Before(freezeStart.Add(10 * time.Minute)); at = at.Add(every) {
			up := at.Sub(freezeStart) < time.Minute || at.Sub(freezeStart) >= 4*time.Minute
			var d safety.FreezeDecision
			state, d = safety.StepFreeze(state, probes(true, up), safety.FreezePolicy{}, at)
			if d.Began {
				require.True(t, began.IsZero())
				began = at
			}
			if d.Ended {
				require.True(t, ended.IsZero())
				ended = at
			}
		}
		require.Equal(t, freezeStart.Add(time.Minute+30*time.Second), began, every)
		require.Equal(t, freezeStart.Add(4*time.Minute), ended, every)
	}
}
