// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machineset"
)

// replacements are the reasons of deletions after which another machine is created.
var replacements = map[machinist.Reason]bool{machineset.ReasonFailed: true, machineset.ReasonPreservationOver: true}

// TestDecide_Freeze_NoCreationNoReplacement decides about any set: while there is a
// freeze, no machine is created and none is deleted because it is Failed. All other
// deletions go on.
func TestDecide_Freeze_NoCreationNoReplacement(t *testing.T) {
	creations, replaced := 0, 0
	forAll(t, func(t *testing.T, _ *rand.Rand, in machineset.Observation) {
		without := machineset.Decide(in, machineset.Policy{}, now)
		in.Freeze = machine.Freeze{Frozen: true, Message: "the target API server does not answer"}
		d := machineset.Decide(in, machineset.Policy{}, now)
		held := slices.Contains(d.Holds, in.Freeze.Hold(now))
		for _, a := range without.Actions {
			switch a := a.(type) {
			case machinist.Create:
				creations++
				require.True(t, held, "%s", d)
			case machinist.Delete:
				if replacements[a.Reason] {
					replaced++
					require.True(t, held, "%s", d)
					continue
				}
				require.Contains(t, d.Actions, machinist.Action(a))
			}
		}
		for _, a := range d.Actions {
			switch a := a.(type) {
			case machinist.Create:
				t.Errorf("%s", a)
			case machinist.Delete:
				require.False(t, replacements[a.Reason], "%s", a)
			}
		}
		if held {
			require.False(t, d.NextCheck.IsZero(), "%s", d)
		}
	})
	require.Greater(t, creations, 50)
	require.Greater(t, replaced, 20)
}
