// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
)

// TestStep_AnyRecordedTime_NextCheckIsLater has a step whose clock differs from the clocks of
// the state and of the observation.
func TestStep_AnyRecordedTime_NextCheckIsLater(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		d := &dice{bytes: randomBytes(seed, 400)}
		s, p := d.state(), d.policy()
		in := d.observation()
		for _, clock := range []time.Time{
			now.Add(-24 * time.Hour), now.Add(-30 * time.Minute), now.Add(-3 * time.Second), now.Add(3 * time.Second), now.Add(30 * time.Minute), now.AddDate(173, 0, 0),
		} {
			next, plan := drain.Step(s, in, p, clock)
			require.True(t, plan.Over() || plan.NextCheck.After(clock), "seed %d at %s: %s", seed, clock, plan)
			_, again := drain.Step(next, in, p, clock.Add(time.Millisecond))
			require.True(t, again.Over() || again.NextCheck.After(clock.Add(time.Millisecond)), "seed %d at %s: %s", seed, clock, again)
		}
	}
}
