// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is t0 plus some seconds.
func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

// lease is a lease under "pool" from t0+since to t0+end.
func lease(holder string, since, end int) permits.Lease {
	return permits.Lease{Key: "pool", Holder: holder, Since: at(since), Expires: at(end)}
}

// granted acquires under "pool" and fails the test if it is refused.
func granted(t *testing.T, l *permits.Ledger, holder string, now time.Time) permits.Lease {
	t.Helper()
	got, no := l.Acquire("pool", holder, now)
	require.Nil(t, no, "%v", no)
	return got
}

// refused acquires under "pool" and fails the test if it is granted.
func refused(t *testing.T, l *permits.Ledger, holder string, now time.Time) permits.Refusal {
	t.Helper()
	got, no := l.Acquire("pool", holder, now)
	require.NotNil(t, no)
	require.Zero(t, got)
	return *no
}

func TestAcquire_NoHolderOrChangedResult_KeepsTheLedger(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	granted(t, l, "a", t0)
	refused(t, l, "b", t0).Holders[0].Expires = t0
	l.Held("pool", t0)[0].Holder = "x"
	l.Leases(t0)[0].Holder = "y"
	require.Equal(t, []permits.Lease{lease("a", 0, 60)}, l.Held("pool", t0))

	no := refused(t, l, "", t0)
	require.EqualValues(t, "HolderMissing", no.Reason)
	require.Zero(t, no.RetryAt, "waiting does not help")
	require.False(t, l.Release("pool", "", t0))
	require.Zero(t, l.Adopt(permits.Lease{Key: "pool"}, t0))
}

func TestAcquire_NilZeroOrNoLimit_GrantsNothing(t *testing.T) {
	for name, l := range map[string]*permits.Ledger{
		"nil": nil, "zero": {}, "limit zero": permits.NewLedger(0, time.Minute), "limit negative": permits.NewLedger(math.MinInt, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			no := refused(t, l, "a", t0)
			require.EqualValues(t, "NothingAllowed", no.Reason)
			require.Zero(t, no.RetryAt, "waiting does not help")
			require.Contains(t, no.String(), "limit is")
			require.False(t, l.Release("pool", "a", t0))
			require.Nil(t, l.Held("pool", t0))
			require.Nil(t, l.Leases(t0))
			require.Zero(t, l.Adopt(permits.Lease{}, t0))
		})
	}
	_, no := (*permits.Ledger)(nil).AcquireWithin(3, "pool", "a", t0)
	require.EqualValues(t, "NothingAllowed", no.Reason)
	require.Zero(t, (*permits.Ledger)(nil).Adopt(lease("a", 0, 0), t0))
}

func TestAcquire_EndOfTime_LeaseNeverExpires(t *testing.T) {
	l := permits.NewLedger(1, time.Hour)
	late := time.Unix(math.MaxInt64-62135596800, 0) // the last second a time can hold
	require.Zero(t, granted(t, l, "a", late).Expires)
	refused(t, l, "b", late)
}

// TestLedger_Restart_KeepsEveryLease asserts that a ledger that adopts the saved leases has the
// same leases, with later ends.
func TestLedger_Restart_KeepsEveryLease(t *testing.T) {
	l, again := permits.NewLedger(2, time.Minute), permits.NewLedger(2, time.Minute)
	for i, key := range []string{"z", "pool", "a", "pool"} {
		l.Acquire(key, fmt.Sprint("m", i), t0)
	}
	want := l.Leases(at(30))
	text, err := json.Marshal(want)
	require.NoError(t, err)
	var saved []permits.Lease
	require.NoError(t, json.Unmarshal(text, &saved))
	for i, s := range saved {
		again.Adopt(s, at(30))
		want[i].Expires = at(90)
	}
	require.Equal(t, want, again.Leases(at(30)))
	require.True(t, slices.IsSortedFunc(want, func(x, y permits.Lease) int { return strings.Compare(x.Key+x.Holder, y.Key+y.Holder) }))
}

func TestLedger_ExpiredAndEmptyKeys_AreRemoved(t *testing.T) {
	expiring, released, live := permits.NewLedger(1, time.Minute), permits.NewLedger(1, 0), permits.NewLedger(1, 0)
	var refusing permits.Ledger
	for i := range 100_000 {
		expiring.Acquire(fmt.Sprint(i), "m", at(i))
		released.Acquire(fmt.Sprint(i), "m", t0)
		released.Release(fmt.Sprint(i), "m", t0)
		refusing.Acquire(fmt.Sprint(i), "m", t0)
		live.Acquire(fmt.Sprint(i%1000), "m", t0)
	}
	require.Len(t, expiring.Leases(at(99_999)), 60)
	require.Less(t, permits.Accounts(expiring), 200)
	require.LessOrEqual(t, permits.Accounts(released), 64)
	require.LessOrEqual(t, permits.Accounts(&refusing), 64, "nothing was granted")
	require.Len(t, live.Leases(t0), 1000)
}

func TestLease_Live_UntilItsEnd(t *testing.T) {
	require.False(t, permits.Lease{}.Live(at(10)), "the zero lease permits nothing")
	require.True(t, lease("a", 0, 11).Live(at(10)))
	require.False(t, lease("a", 0, 10).Live(at(10)), "at its end")
	require.True(t, permits.Lease{Holder: "a"}.Live(at(10)), "without an end")
	require.False(t, permits.Lease{Key: "pool", Expires: at(11)}.Live(at(10)), "without a holder")
}

func TestRefusal_String_NamesThreeHolders(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	require.Equal(t, "granted", (*permits.Refusal)(nil).String())
	require.Equal(t, "no lease", permits.Lease{}.String())
	no := refused(t, l, "", t0)
	require.Equal(t, `no permit under "pool": the holder has no name`, no.String())
	for _, h := range []string{"a", "b", "c", "d", "e"} {
		l.Adopt(permits.Lease{Key: "pool", Holder: h}, t0.In(time.FixedZone("", 3600)))
	}
	no = refused(t, l, "x", t0)
	require.Equal(t, `no permit for "x" under "pool": 5 held, limit 1 `+
		`("a" until 2026-01-01T00:01:00Z, "b" until 2026-01-01T00:01:00Z, "c" until 2026-01-01T00:01:00Z and 2 more); `+
		`ask again at 2026-01-01T00:01:00Z`, no.String())
	l = permits.NewLedger(1, 0)
	granted(t, l, "a", t0)
	no = refused(t, l, "x", t0)
	require.Equal(t, `no permit for "x" under "pool": 1 held, limit 1 ("a" until released); ask again after a release`, no.String())
	require.NotPanics(t, func() { _ = (&permits.Refusal{}).String() })
}

// The tests from here to the concurrent ones fail on the behavior of MCM that docs/parity.md describes.

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

const hammers = 16

func TestLedger_Concurrent_IsSafe(t *testing.T) {
	const limit = 3
	l := permits.NewLedger(limit, time.Hour)
	var in [2]atomic.Int32
	var wg sync.WaitGroup
	for i := range hammers {
		wg.Go(func() {
			me, key := fmt.Sprint(i), i%2
			for range 500 {
				if _, no := l.Acquire(fmt.Sprint(key), me, t0); no != nil {
					l.Held(fmt.Sprint(key), t0)
					l.Leases(t0)
					continue
				}
				if n := in[key].Add(1); n > limit {
					t.Errorf("%d holders, limit %d", n, limit)
				}
				in[key].Add(-1)
				if !l.Release(fmt.Sprint(key), me, t0) {
					t.Error("the lease has ended")
				}
				l.Release(fmt.Sprint(key), me, t0) // a repeated release changes nothing
			}
		})
	}
	wg.Wait()
	require.Empty(t, l.Leases(t0))
}
