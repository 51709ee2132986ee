// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestDecide_Unproven_Law asserts that no set, machine or deployment is written on lists that may be
// old, and that live lists are requested instead (I-23). Nodes are corrected by the next pass, and the
// first finalizer depends on no list.
func TestDecide_Unproven_Law(t *testing.T) {
	t.Parallel()
	lists := 0
	for seed := range uint64(3000) {
		in := chance{rand.New(rand.NewPCG(seed, 9))}.observation()
		if in.Deployment == nil {
			continue
		}
		in.Proven = true
		proven := deployment.Decide(in, deployment.Policy{}, rollNow)
		in.Proven = false
		d := deployment.Decide(in, deployment.Policy{}, rollNow)
		written := slices.ContainsFunc(proven.Actions, func(a machinist.Action) bool {
			switch kind := kindOf(a); {
			case kind == "update node", strings.HasPrefix(kind, "read "):
				return false
			case kind == "update machinedeployment":
				return slices.Contains(in.Deployment.Finalizers, v1alpha1.MCMFinalizerName)
			default:
				return true
			}
		})
		if !written {
			require.Equal(t, proven, d, "seed %d", seed)
			continue
		}
		lists++
		require.Equal(t, []machinist.Action{machinist.Refresh{Kind: "MachineSet"}}, d.Actions, "seed %d: %s", seed, d)
		require.Equal(t, machinist.Reason("ViewIncomplete"), d.Reason)
		require.False(t, d.WriteStatus)
		require.NotEmpty(t, d.Holds)
		require.True(t, d.NextCheck.After(rollNow))
	}
	require.Greater(t, lists, 500)
}
