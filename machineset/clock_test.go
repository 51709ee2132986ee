// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machineset"
)

// TestDecide_AnyRecordedTime_NextCheckIsLater has the clock of the set differ from those that
// recorded the times of an observation.
func TestDecide_AnyRecordedTime_NextCheckIsLater(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 41))
		in := randomObservation(r)
		for _, clock := range []time.Time{
			{}, now.Add(-24 * time.Hour), now.Add(-30 * time.Minute), now.Add(-3 * time.Second), now.Add(3 * time.Second), now.Add(30 * time.Minute), now.AddDate(173, 0, 0),
		} {
			d := machineset.Decide(in, machineset.Policy{}, clock)
			if len(d.Actions)+len(d.Holds) > 0 || !d.NextCheck.IsZero() {
				require.True(t, d.NextCheck.After(clock), "seed %d at %s: %s", seed, clock, d)
			}
		}
	}
}
