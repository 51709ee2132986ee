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
	calls, successes := carryOut(machineset.BatchesFrom(in.Count, in.InitialBatchSize), in.FailFromCall)
	return nil, same("calls", out, slowStartOut{calls, successes, successes < calls})
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
