// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHealth_TargetClusterSilent_LeaderIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHealth()
		h.standBy()
		h.lead()
		h.fill()
		require.NoError(t, h.ready(), "without a target cluster nothing is heard")
		h.heard()
		time.Sleep(deaf)
		require.NoError(t, h.ready())
		time.Sleep(time.Second)
		require.ErrorContains(t, h.ready(), "has not heard from the target cluster since 2000-01-01T00:00:00Z")
		require.NoError(t, h.healthy(), "to end it would not help")
		h.heard()
		require.NoError(t, h.ready())
	})
}
