// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/machineset"
)

type slowStartIn struct{ Count, FailFromCall, InitialBatchSize int }

type slowStartOut struct {
	Calls, Successes int
	Failed           bool
}

func slowStart(in slowStartIn, out slowStartOut) ([]string, error) {
	calls, successes := carryOut(in.batches(), in.FailFromCall)
	return nil, same("calls", out, slowStartOut{calls, successes, successes < calls})
}

// batches are those of the SDK, which begin with one call, for units of as many calls as
// the first batch of the vector has. A first batch without calls has none after it.
func (in slowStartIn) batches() []int {
	first, left := in.InitialBatchSize, in.Count
	if first <= 0 {
		return nil
	}
	batches := machineset.Batches((left + first - 1) / first)
	for i, units := range batches {
		batches[i] = min(units*first, left)
		left -= batches[i]
	}
	return batches
}

// carryOut is what a shell does with batches: a batch is finished, and none is
// begun after a failure. Calls count from 1; failFrom 0 is never.
func carryOut(batches []int, failFrom int) (calls, successes int) {
	for _, batch := range batches {
		for range batch {
			calls++
			if failFrom == 0 || calls < failFrom {
				successes++
			}
		}
		if successes < calls {
			break
		}
	}
	return calls, successes
}
