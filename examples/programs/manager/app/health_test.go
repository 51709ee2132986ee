// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

func TestHealth_Frozen_LeaderIsNotReady(t *testing.T) {
	t.Parallel()
	h := newHealth(metrics.New(metrics.Options{}), newGate(options.LeaderElection{}).lost)
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

func TestHealth_LeaseNotRenewed_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(options.LeaderElection{LeaderElect: true, RenewDeadline: 10 * time.Second})
		h := newHealth(metrics.New(metrics.Options{}), g.lost)
		time.Sleep(time.Hour)
		require.NoError(t, h.healthy(), "a standby")
		require.NoError(t, g.renew(time.Now()))
		g.timer.Stop() // it fires late in a process that was stopped
		time.Sleep(9 * time.Second)
		require.NoError(t, h.healthy())
		require.Contains(t, h.details(), "lease: not lost")
		time.Sleep(time.Second)
		require.ErrorIs(t, h.healthy(), ErrLeaseLost)
		require.Contains(t, h.details(), "lease: the lease was lost: not renewed for 10s, the renew deadline is 10s")
	})
}
