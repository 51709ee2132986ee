// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/manager/metrics"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

func TestHealth_Frozen_LeaderIsNotReady(t *testing.T) {
	t.Parallel()
	h := newHealth(metrics.New(metrics.Options{}))
	h.standBy()
	h.lead()
	h.fill()
	require.NoError(t, h.ready())
	since := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	h.probed(safety.FreezeDecision{Freeze: machine.Freeze{Frozen: true, Since: since, Message: "the target API server does not answer"}})
	require.ErrorContains(t, h.ready(), "frozen since 2000-01-01T00:00:00Z: the target API server does not answer")
	require.NoError(t, h.healthy(), "to end it would not help")
	h.probed(safety.FreezeDecision{})
	require.NoError(t, h.ready())
}
