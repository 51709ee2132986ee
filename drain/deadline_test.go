// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machinist-dev/machinist/drain"
)

// reference is the obvious way to reach rungs.
type reference struct{ at map[int]time.Time }

// reached returns how many rungs are reached at a time, how many are for the first time, and
// when the next one is due.
func (w *reference) reached(l drain.Ladder, start, now time.Time) (n, fresh int, next time.Time) {
	for i, rung := range l {
		at := start.Add(rung.After)
		if final := rung.Action == drain.ForceDeletePods || rung.Action == drain.Proceed || rung.Action == drain.GiveUp; final && i > 0 {
			pause := rung.After - l[i-1].After
			if rung.Action != drain.ForceDeletePods {
				pause = max(pause, time.Second)
			}
			if late := w.at[i-1].Add(pause); late.After(at) {
				at = late
			}
		}
		if now.Before(at) {
			for j := i; j < len(l); j++ {
				delete(w.at, j)
			}
			return i, fresh, at
		}
		if before, known := w.at[i]; !known || before.After(now) {
			w.at[i] = now
			fresh++
		}
	}
	return len(l), fresh, time.Time{}
}

// TestStep_RandomLadders_ReachRungsAtTheirDeadlines asserts that a rung is applied in the first
// step at or after its deadline, and that this step is requested no later than the deadline.
// Latencies, responses, crashes with and without the state, writes of others and jumps of the clock
// are random.
func TestStep_RandomLadders_ReachRungsAtTheirDeadlines(t *testing.T) {
	acted := map[drain.Escalation]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 5))
		var l drain.Ladder
		for _, rung := range randomLadder(r) {
			twice := func(below drain.Rung) bool { return below.Action == rung.Action && below.Grace == rung.Grace }
			if !slices.ContainsFunc(l, twice) {
				l = append(l, rung)
			}
		}
		p := anchored(l)
		var state drain.State
		var results []drain.Result
		w := reference{at: map[int]time.Time{}}
		at := now
		for range 60 {
			in := observed(newPod("a"), newPod("b", func(p *corev1.Pod) { p.Labels["written"] = "often" }))
			in.Results, results = results, nil
			next, plan := drain.Step(state, in, p, at)
			n, fresh, due := w.reached(l, now, at)
			require.Len(t, plan.Rungs, n, "seed %d: %v at %s: %v", seed, l, at.Sub(now), plan.Rungs)
			for _, rung := range l[n-fresh : n] {
				acted[rung.Action]++
			}
			if plan.Over() {
				require.NotEmpty(t, escalationLaws[l[n-1].Action].ends)
				break
			}
			require.False(t, !due.IsZero() && plan.NextCheck.After(due), "seed %d: the next check is not after a deadline", seed)
			row := plan.Rows[0]
			if fresh > 0 {
				require.Equal(t, strongest(l[:n]), row.Action, "seed %d: %v at %s: a reached rung is applied in the same step", seed, l, at.Sub(now))
			}
			require.LessOrEqual(t, strengthOf(row.Action), strengthOf(strongest(l[:n])), "a rung is not applied early")
			for i := range plan.Rows {
				if row := plan.Rows[i]; strengthOf(row.Action) > 0 && r.IntN(3) > 0 {
					err := []error{nil, apierrors.NewTooManyRequests("slow down", r.IntN(90)), apierrors.NewInternalError(errors.New("boom")), apierrors.NewTimeoutError("late", 3)}[r.IntN(4)]
					results = append(results, drain.Result{Row: row, Err: err, At: at})
				}
			}
			state = next
			step := plan.NextCheck.Sub(at) + time.Duration(r.IntN(3))*time.Duration(r.IntN(2000))*time.Millisecond
			switch r.IntN(14) {
			case 0: // a crash that loses the state
				state, results = drain.State{}, nil
				w.at = map[int]time.Time{}
			case 1: // a crash that keeps the state, and a pause
				step += time.Duration(r.IntN(90)) * time.Second
				results = nil
			case 2: // another client writes something
				step = time.Duration(1+r.IntN(500)) * time.Millisecond
			case 3: // the clock is set
				step = time.Duration(r.IntN(120)-60) * time.Second
			}
			at = at.Add(step)
		}
	}
	for e := range escalationLaws {
		require.Greater(t, acted[e], 20, "random ladders do not reach %s: %v", e, acted)
	}
}

func strengthOf(v drain.Action) int {
	return map[drain.Action]int{drain.Evict: 1, drain.Delete: 2, drain.ForceDelete: 3}[v]
}

func strongest(l drain.Ladder) drain.Action {
	v := drain.Evict
	for _, rung := range l {
		switch rung.Action {
		case drain.ForceDeletePods:
			return drain.ForceDelete
		case drain.IgnoreBudgets:
			v = drain.Delete
		}
	}
	return v
}
