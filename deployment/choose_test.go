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
	counted := func(answer func(name string) deployment.Answer) machinist.Hold {
		policy := rollPolicy
		policy.Gates = []deployment.Gate{func(c deployment.Choice) deployment.Answer { return answer(c.Machine.Name) }}
		dec := deployment.Plan(in, policy, rollNow)
		i := slices.IndexFunc(dec.Holds, func(h machinist.Hold) bool { return h.Message == "gates keep 5 more machines" })
		require.GreaterOrEqual(t, i, 0, dec.String())
		return dec.Holds[i]
	}
	hold := counted(func(name string) deployment.Answer {
		switch name {
		case "md-c0-21":
			return deployment.Answer{Verdict: deployment.Wait, Until: rollNow.Add(time.Minute)}
		case "md-c0-22":
			return deployment.Answer{Verdict: deployment.Wait, Until: rollNow.Add(time.Hour)}
		default:
			return deployment.Answer{Verdict: deployment.Wait}
		}
	})
	require.Equal(t, rollNow.Add(time.Minute), hold.Until, "the earliest of those that are told in one")

	hold = counted(func(string) deployment.Answer {
		return deployment.Answer{Verdict: deployment.Deny, Until: rollNow.Add(time.Minute)}
	})
	require.Zero(t, hold.Until, "no is no")
}
