// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
)

func TestInPlaceNothingIsAcknowledgedBeforeTheNodeIsKnown(t *testing.T) {
	for _, known := range []bool{true, false} {
		s := newUpdScene(updDeployment(1, "0", "1", false), "c2", 0, 1)
		s.machine("new", "a", "moved")
		if !known {
			delete(s.in.Nodes, "a") // it may still be closed to pods
		}
		dec := s.plan().dec
		acknowledged := slices.ContainsFunc(dec.Actions, func(a deployment.Action) bool {
			_, ok := a.(deployment.WriteMachine)
			return ok
		})
		require.Equal(t, known, acknowledged)
		require.Equal(t, !known, slices.Contains(rollReasons(dec), deployment.ReasonNodeUnknown))
	}
}
