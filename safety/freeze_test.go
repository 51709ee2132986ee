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

var errDown = errors.New("connection refused")

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
		p := probing{now: start}
		require.Zero(t, p.until(start.Add(10*time.Minute), true, true), name)
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

// TestStepFreeze_EachHistory_FreezeAndNextProbe plays probes of the target API server.
func TestStepFreeze_EachHistory_FreezeAndNextProbe(t *testing.T) {
	const soon, minute, up, down = 6 * time.Second, time.Minute, true, false
	type step struct {
		after, next time.Duration // since the step before, and until the next one
		up, frozen  bool
		clocks      time.Duration // when timeouts begin, since the first step
	}
	for name, steps := range map[string][]step{
		"frozen until an answer": {{0, soon, down, true, 0}, {time.Hour, soon, down, true, 0}, {0, minute, up, false, time.Hour}},
		"five probes in a timeout": {
			{0, minute, up, false, 0}, {minute, soon, down, false, 0}, {minute / 2, soon, down, true, 0},
		},
		"no gap": {{0, minute, up, false, 0}, {150 * time.Second, minute, up, false, 0}},
		"a gap":  {{0, minute, up, false, 0}, {151 * time.Second, minute, up, false, 151 * time.Second}},
		"the clock is set back in an outage": {
			{0, minute, up, false, 0}, {0, soon, down, false, 0}, {-time.Hour, soon, down, false, -time.Hour}, {minute / 2, soon, down, true, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := probing{now: start}
			for i, s := range steps {
				p.now = p.now.Add(s.after)
				d := p.probe(true, s.up)
				require.Equal(t, s.frozen, d.Freeze.Frozen, "step %d", i)
				require.Equal(t, p.now.Add(s.next), d.NextCheck, "step %d", i)
				if !s.frozen {
					require.Equal(t, start.Add(s.clocks), d.Freeze.ClocksFrom, "step %d", i)
				}
			}
		})
	}
	_, d := safety.StepFreeze(safety.FreezeState{}, nil, safety.FreezePolicy{}, start)
	require.True(t, d.Freeze.Frozen && d.Began, "nothing was probed")
}

func TestStepFreeze_RecoveryBeforeTimeout_CountBeginsAnew(t *testing.T) {
	p := probing{now: start}
	p.probe(true, true)
	for range 20 { // every failure is followed by an answer
		p.now = p.now.Add(25 * time.Second)
		require.False(t, p.probe(true, false).Freeze.Frozen)
		p.now = p.now.Add(25 * time.Second)
		require.False(t, p.probe(true, true).Freeze.Frozen)
	}
	require.Equal(t, start, p.last.Freeze.ClocksFrom)
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
		p := probing{now: start}
		since := map[int]time.Time{}
		var lastFrozen, lastStep time.Time
		control, target := true, true
		for step := range 60 {
			if r.IntN(4) == 0 {
				control = !control
			}
			if r.IntN(4) == 0 {
				target = !target
			}
			before, kept := p.state, step%10 == 0 // JSON takes longer than all the rest
			memory := ""
			if kept {
				memory = toJSON(t, before)
			}
			d := p.probe(control, target)
			if kept {
				require.Equal(t, memory, toJSON(t, before), "the argument is not changed")
				var stored safety.FreezeState
				require.NoError(t, json.Unmarshal([]byte(toJSON(t, p.state)), &stored))
				require.Equal(t, d.Freeze.ClocksFrom.IsZero(), stored.ClocksFrom.IsZero())
			}
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
