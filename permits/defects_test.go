// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

// The tests in this file are named after the defects of the reference system
// which they would show; docs/parity.md lists them.

// A key counts as stale from its last use, not from its registration.
func TestDM12AndDD24TheLastUseIsRemembered(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		for range 10 { // in use all the time, registered long ago
			pass(stale / 2)
			require.True(t, pg.TryPermit("pool", 0))
			pg.ReleasePermit("pool")
		}
		pass(time.Millisecond)
		pg.RegisterPermits("other", 1) // looks for stale keys
		require.True(t, pg.TryPermit("pool", 0))
	})
}

// A key is not dropped while a permit of it is held or waited for, so that
// registering it anew lets nobody else in.
func TestDM12AndDD25DroppingNeverLetsTwoHoldersIn(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		require.True(t, pg.TryPermit("pool", 0))
		waiting := try(pg, "pool", 100*stale)
		pass(10 * stale)
		pg.RegisterPermits("other", 1) // looks for stale keys
		pg.RegisterPermits("pool", 1)
		require.False(t, pg.TryPermit("pool", 0))
		pg.ReleasePermit("pool")
		require.True(t, (<-waiting).granted)
		pass(10 * stale)
		pg.RegisterPermits("pool", 1)
		require.False(t, pg.TryPermit("pool", 0))
	})
}

// Deleting a key or closing the giver while somebody waits tells them false.
func TestDD26WaitersSurviveDeleteAndClose(t *testing.T) {
	for name, end := range map[string]func(pg permits.PermitGiver){
		"delete": func(pg permits.PermitGiver) { pg.DeletePermits("pool") },
		"close":  func(pg permits.PermitGiver) { pg.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			giver(t, func(t *testing.T, pg permits.PermitGiver) {
				require.True(t, pg.TryPermit("pool", 0))
				var waiting []<-chan answer
				for range 20 {
					waiting = append(waiting, try(pg, "pool", time.Minute))
				}
				pass(time.Second)
				end(pg)
				for _, w := range waiting {
					require.Equal(t, answer{false, time.Second}, <-w)
				}
				pg.ReleasePermit("pool")
			})
		})
	}
}

// Closing and deleting may be repeated, also at the same time.
func TestDD27CloseAndDeleteAreIdempotent(t *testing.T) {
	pg := permits.NewPermitGiver(stale, janitor)
	pg.RegisterPermits("pool", 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { pg.DeletePermits("pool") })
		wg.Go(pg.Close)
	}
	wg.Wait()
	pg.Close()
}

// A timeout of zero or less is a question, not a panic. (That a free permit needs
// no timer is in TestAFreePermitCostsNoAllocation.)
func TestDD28NoTimeoutMeansNoWaiting(t *testing.T) {
	for _, timeout := range []time.Duration{0, -1, -time.Hour} {
		giver(t, func(t *testing.T, pg permits.PermitGiver) {
			require.Equal(t, answer{true, 0}, <-try(pg, "pool", timeout))
			require.Equal(t, answer{false, 0}, <-try(pg, "pool", timeout))
		})
	}
}

// A release ends the lease of the one who has it, and nobody else's. (The
// PermitGiver cannot do this: its interface has no holder.)
func TestDD29AReleaseFreesOnlyTheReleaser(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	granted(t, l, "a", t0)
	require.Equal(t, permits.NotHeld, l.Release("pool", "b", t0), "by another")
	require.Equal(t, permits.Released, l.Release("pool", "a", t0))
	granted(t, l, "b", t0)
	require.Equal(t, permits.NotHeld, l.Release("pool", "a", t0), "twice")
	require.Equal(t, []permits.Lease{lease("b", 0, 60)}, l.Held("pool", t0))
}

// Nobody has to wait in order to learn when to come back; and who does wait is
// woken by the release, not by looking again.
func TestDD30AndDM18ARefusalDoesNotBlock(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	granted(t, l, "a", t0)
	no := refused(t, l, "b", at(1)) // at once; there is nothing to wait with
	require.Equal(t, at(60), no.RetryAt)
	require.Equal(t, "a", no.Holders[0].Holder)

	synctest.Test(t, func(t *testing.T) {
		pg := permits.NewPermitGiver(stale, janitor)
		pg.RegisterPermits("pool", 1)
		require.True(t, pg.TryPermit("pool", 0))
		waiting := try(pg, "pool", time.Minute)
		pass(time.Nanosecond)
		pg.ReleasePermit("pool")
		require.Equal(t, answer{true, time.Nanosecond}, <-waiting)
	})
}

// The reference system sleeps within the permit until its cache shows what was
// done. Here the lease counts in place of what the cache does not show yet,
// across workers and restarts.
func TestDM18ALeaseStandsForWhatTheCacheDoesNotShow(t *testing.T) {
	l := permits.NewLedger(1, 10*time.Minute)
	cached := map[string]bool{} // machines seen as being replaced
	replace := func(l *permits.Ledger, machine string, now time.Time) bool {
		for m := range cached {
			l.Adopt(permits.Lease{Key: "pool", Holder: m}, now)
		}
		_, no := l.Acquire("pool", machine, now)
		return no == nil
	}
	require.True(t, replace(l, "a", t0))
	require.False(t, replace(l, "b", t0), "the cache shows nothing, the lease counts")
	cached["a"] = true
	require.False(t, replace(permits.NewLedger(1, 10*time.Minute), "b", at(1)), "after a restart, the cache counts")
	delete(cached, "a")
	require.Equal(t, permits.Released, l.Release("pool", "a", at(2)))
	require.True(t, replace(l, "b", at(2)))
}

// Machines without a deployment share the empty key. It is limited like any
// other; who wants each of them on its own uses a key of its own.
func TestDM52TheEmptyKeyIsLimitedToo(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	_, no := l.Acquire("", "a", t0)
	require.Nil(t, no)
	_, no = l.Acquire("", "b", t0)
	require.Equal(t, permits.LimitReached, no.Reason)

	pg := permits.NewPermitGiver(stale, janitor)
	pg.RegisterPermits("", 1)
	require.True(t, pg.TryPermit("", 0))
	require.False(t, pg.TryPermit("", 0))
}
