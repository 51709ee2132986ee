// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
)

func TestWhenAGateIsAskedAgain(t *testing.T) {
	d := rolling(25, 1, 0)
	in := rollSee(d, rollSet(d, "c0", 25, 25, 25), rollSet(d, "c1", 1, 1, 1))
	counted := func(answer func(name string) (bool, machinist.Hold)) machinist.Hold {
		policy := rollPolicy
		policy.Gates = []deployment.Gate{func(c deployment.Choice) (bool, machinist.Hold) { return answer(c.Machine.Name) }}
		dec := deployment.Decide(in, policy, rollNow)
		i := slices.IndexFunc(dec.Holds, func(h machinist.Hold) bool { return h.Message == "gates keep 5 more machines" })
		require.GreaterOrEqual(t, i, 0, dec.String())
		return dec.Holds[i]
	}
	hold := counted(func(name string) (bool, machinist.Hold) {
		switch name {
		case "md-c0-21":
			return false, machinist.Hold{Until: rollNow.Add(time.Minute)}
		case "md-c0-22":
			return false, machinist.Hold{Until: rollNow.Add(time.Hour)}
		default:
			return false, machinist.Hold{}
		}
	})
	require.Equal(t, rollNow.Add(time.Minute), hold.Until, "the earliest of those that are told in one")
}
