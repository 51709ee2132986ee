// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
)

// TestPlan_AnyRecordedTime_AsksAgainLater has the clock of the deployment differ from those
// that recorded the times of an observation.
func TestPlan_AnyRecordedTime_AsksAgainLater(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		c := chance{rand.New(rand.NewPCG(seed, 41))}
		in, p := c.observation(), c.policy()
		for _, clock := range []time.Time{
			rollNow.Add(-24 * time.Hour), rollNow.Add(-30 * time.Minute), rollNow.Add(-3 * time.Second), rollNow.Add(3 * time.Second), rollNow.Add(30 * time.Minute), rollNow.AddDate(173, 0, 0),
		} {
			d := deployment.Decide(in, p, clock)
			require.True(t, d.NextCheck.After(clock) || d.NextCheck.IsZero() && len(d.Actions) == 0, "seed %d at %s: %s", seed, clock, d)
		}
	}
}
