// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

// The tests in this file fail on the behavior of MCM that docs/parity.md describes.

// TestRelease_OtherHolder_KeepsTheLease asserts that a release ends the lease of its holder only.
// The interface of PermitGiver has no holder.
func TestRelease_OtherHolder_KeepsTheLease(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	granted(t, l, "a", t0)
	require.False(t, l.Release("pool", "b", t0), "by another")
	require.True(t, l.Release("pool", "a", t0))
	granted(t, l, "b", t0)
	require.False(t, l.Release("pool", "a", t0), "twice")
	require.Equal(t, []permits.Lease{lease("b", 0, 60)}, l.Held("pool", t0))
}

// TestAcquire_LimitReached_DoesNotBlock asserts that a refusal says when to acquire again.
func TestAcquire_LimitReached_DoesNotBlock(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	granted(t, l, "a", t0)
	no := refused(t, l, "b", at(1)) // at once; there is nothing to wait with
	require.Equal(t, at(60), no.RetryAt)
	require.Equal(t, "a", no.Holders[0].Holder)
}

// TestLedger_StaleCache_LeaseCounts asserts that the lease counts as long as the cache does not
// show the disruption, for all workers and after restarts. MCM sleeps until its cache shows it.
func TestLedger_StaleCache_LeaseCounts(t *testing.T) {
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
	require.True(t, l.Release("pool", "a", at(2)))
	require.True(t, replace(l, "b", at(2)))
}

// TestLedger_EmptyKey_IsLimited asserts that machines without a deployment share the empty key,
// which is limited like any other.
func TestLedger_EmptyKey_IsLimited(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	_, no := l.Acquire("", "a", t0)
	require.Nil(t, no)
	_, no = l.Acquire("", "b", t0)
	require.EqualValues(t, "LimitReached", no.Reason)
}

func TestAcquire_Free_NoAllocation(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		l.Acquire("pool", "a", t0)
		l.Release("pool", "a", t0)
	}))
}
