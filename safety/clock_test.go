// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/safety"
)

// TestStep_AnyRecordedTime_AsksAgainLaterAndKeepsToTheLimit uses other clocks for the times of
// the observation and of the state.
func TestStep_AnyRecordedTime_AsksAgainLaterAndKeepsToTheLimit(t *testing.T) {
	t.Parallel()
	recorded := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 41))
		p, state := randomPolicy(r), safety.State{}
		for i := range 4 {
			state, _ = safety.Step(state, randomObservation(r, recorded.Add(time.Duration(i)*time.Hour)), p, recorded.Add(time.Duration(i)*time.Hour))
		}
		for _, ahead := range []time.Duration{-24 * time.Hour, -30 * time.Minute, -3 * time.Second, 3 * time.Second, 30 * time.Minute, 24 * time.Hour} {
			clock := recorded.Add(3*time.Hour + ahead)
			in := randomObservation(r, clock)
			next, d := safety.Step(state, in, p, clock)
			require.True(t, d.NextCheck.After(clock) || d.NextCheck.IsZero() && len(d.Actions) == 0, "seed %d: %+v", seed, d)
			_, again := safety.Step(next, in, p, clock.Add(time.Millisecond))
			require.LessOrEqual(t, len(d.Actions)+len(again.Actions), p.MaxDeletions, "seed %d: more deletions than one period allows", seed)
		}
	}
}
