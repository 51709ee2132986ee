// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
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
	since := time.Now().Add(-90 * time.Second)
	h.probed(safety.FreezeDecision{Freeze: machine.Freeze{Frozen: true, Since: since, Message: "the target API server does not answer"}})
	require.EqualError(t, h.ready(), "frozen since "+since.UTC().Format(time.RFC3339)+" (1m30s): the target API server does not answer: nothing is created, failed or replaced")
	require.NoError(t, h.healthy(), "to end it would not help")
	h.probed(safety.FreezeDecision{})
	require.NoError(t, h.ready())
}
