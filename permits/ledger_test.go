// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	t.Run("changing a refusal does not change the ledger", func(t *testing.T) {
		l := permits.NewLedger(1, time.Minute)
		granted(t, l, "a", t0)
		refused(t, l, "b", t0).Holders[0].Expires = t0
		l.Held("pool", t0)[0].Holder = "x"
		l.Leases(t0)[0].Holder = "y"
		require.Equal(t, []permits.Lease{lease("a", 0, 60)}, l.Held("pool", t0))
	})
	t.Run("a holder without a name is refused", func(t *testing.T) {
		l := permits.NewLedger(1, time.Minute)
		granted(t, l, "a", t0)
		no := refused(t, l, "", t0)
		require.EqualValues(t, "HolderMissing", no.Reason)
		require.Zero(t, no.RetryAt, "waiting does not help")
		require.False(t, l.Release("pool", "", t0))
	})
}

func TestAcquire_NilZeroOrNoLimit_GrantsNothing(t *testing.T) {
	for name, l := range map[string]*permits.Ledger{
		"nil":            nil,
		"zero":           {},
		"limit zero":     permits.NewLedger(0, time.Minute),
		"limit negative": permits.NewLedger(math.MinInt, time.Minute),
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
	t.Run("nil, with a limit given", func(t *testing.T) {
		_, no := (*permits.Ledger)(nil).AcquireWithin(3, "pool", "a", t0)
		require.EqualValues(t, "NothingAllowed", no.Reason)
		require.Zero(t, (*permits.Ledger)(nil).Adopt(lease("a", 0, 0), t0))
	})
}

func TestAcquire_NoTTL_LeaseNeverExpires(t *testing.T) {
	for _, ttl := range []time.Duration{0, -time.Second} {
		l := permits.NewLedger(1, ttl)
		got := granted(t, l, "a", t0)
		require.Zero(t, got.Expires)
		require.True(t, got.Live(t0.AddDate(1000, 0, 0)))
		no := refused(t, l, "b", t0.AddDate(1000, 0, 0))
		require.Zero(t, no.RetryAt, "only a release can help")
		require.True(t, l.Release("pool", "a", at(1)))
		granted(t, l, "b", at(1))
	}
}

func TestAcquire_EndOfTime_LeaseNeverExpires(t *testing.T) {
	l := permits.NewLedger(1, time.Hour)
	late := time.Unix(math.MaxInt64-62135596800, 0) // the last second a time can hold
	require.Zero(t, granted(t, l, "a", late).Expires)
	refused(t, l, "b", late)
}

func TestAcquireWithin_OtherLimit_Counts(t *testing.T) {
	l := permits.NewLedger(1, time.Minute)
	for i := range 3 {
		_, no := l.AcquireWithin(3, "pool", fmt.Sprint(i), at(10*i))
		require.Nil(t, no)
	}
	t.Run("the limit of the call counts", func(t *testing.T) {
		_, no := l.AcquireWithin(3, "pool", "x", at(20))
		require.Equal(t, 3, no.Limit)
		require.Equal(t, at(60), no.RetryAt)
	})
	t.Run("with a smaller limit several leases have to end", func(t *testing.T) {
		_, no := l.AcquireWithin(2, "pool", "x", at(20))
		require.Equal(t, at(70), no.RetryAt)
		require.Equal(t, at(80), refused(t, l, "x", at(20)).RetryAt)
	})
	t.Run("a limit of zero refuses newcomers but renews", func(t *testing.T) {
		_, no := l.AcquireWithin(0, "pool", "x", at(20))
		require.EqualValues(t, "NothingAllowed", no.Reason)
		require.Len(t, no.Holders, 3)
		_, no = l.AcquireWithin(0, "pool", "2", at(20))
		require.Nil(t, no)
	})
}

func TestAdopt_Lease_IsRenewed(t *testing.T) {
	t.Run("the holder renews an adopted lease", func(t *testing.T) {
		l := permits.NewLedger(1, time.Minute)
		require.Equal(t, lease("a", -30, 60), l.Adopt(permits.Lease{Key: "pool", Holder: "a", Since: at(-30), Expires: at(-1)}, t0))
		require.Equal(t, lease("a", -30, 70), granted(t, l, "a", at(10)))
	})
	t.Run("a lease without holder is not adopted", func(t *testing.T) {
		l := permits.NewLedger(1, time.Minute)
		require.Zero(t, l.Adopt(permits.Lease{Key: "pool"}, t0))
		granted(t, l, "a", t0)
	})
}

// TestLedger_Restart_KeepsEveryLease asserts that a ledger that adopts the saved leases has the
// same leases, with later ends.
func TestLedger_Restart_KeepsEveryLease(t *testing.T) {
	l := permits.NewLedger(2, time.Minute)
	for _, k := range []string{"z", "pool", "a"} {
		l.Acquire(k, "m2", t0)
		l.Acquire(k, "m1", at(1))
	}
	l.Release("a", "m2", at(1))
	text, err := json.Marshal(l.Leases(at(2)))
	require.NoError(t, err)

	var saved []permits.Lease
	require.NoError(t, json.Unmarshal(text, &saved))
	again := permits.NewLedger(2, time.Minute)
	for _, s := range saved {
		again.Adopt(s, at(30))
	}
	var want []permits.Lease
	for _, s := range []permits.Lease{{Key: "a", Holder: "m1"}, {Key: "pool", Holder: "m1"}, {Key: "pool", Holder: "m2"}, {Key: "z", Holder: "m1"}, {Key: "z", Holder: "m2"}} {
		s.Since, s.Expires = at(1), at(90)
		if s.Holder == "m2" {
			s.Since = t0
		}
		want = append(want, s)
	}
	require.Empty(t, cmp.Diff(want, again.Leases(at(30))))
}

func TestLedger_ExpiredAndEmptyKeys_AreRemoved(t *testing.T) {
	t.Run("keys that are not used again", func(t *testing.T) {
		l := permits.NewLedger(1, time.Minute)
		for i := range 100_000 {
			_, no := l.Acquire(fmt.Sprint(i), "m", at(i))
			require.Nil(t, no)
		}
		require.Len(t, l.Leases(at(99_999)), 60)
		require.Less(t, permits.Accounts(l), 200)
	})
	t.Run("keys that were released", func(t *testing.T) {
		l := permits.NewLedger(1, 0)
		for i := range 10_000 {
			l.Acquire(fmt.Sprint(i), "m", t0)
			l.Release(fmt.Sprint(i), "m", t0)
		}
		require.LessOrEqual(t, permits.Accounts(l), 64)
	})
	t.Run("keys under which nothing was granted", func(t *testing.T) {
		var l permits.Ledger
		for i := range 10_000 {
			l.Acquire(fmt.Sprint(i), "m", t0)
		}
		require.LessOrEqual(t, permits.Accounts(&l), 64)
	})
	t.Run("leases are kept", func(t *testing.T) {
		l := permits.NewLedger(1, 0)
		for i := range 1_000 {
			l.Acquire(fmt.Sprint(i), "m", t0)
		}
		require.Len(t, l.Leases(t0), 1_000)
	})
}

func TestLease_Live_UntilItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		lease permits.Lease
		want  bool
	}{
		"the zero lease permits nothing": {permits.Lease{}, false},
		"before its end":                 {lease("a", 0, 11), true},
		"at its end":                     {lease("a", 0, 10), false},
		"without an end":                 {permits.Lease{Holder: "a"}, true},
		"without a holder":               {permits.Lease{Key: "pool", Expires: at(11)}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.lease.Live(at(10))) })
	}
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

func BenchmarkLedger(b *testing.B) {
	now := t0
	b.Run("acquire and release", func(b *testing.B) {
		l := permits.NewLedger(1, time.Minute)
		b.ReportAllocs()
		for b.Loop() {
			l.Acquire("pool", "machine", now)
			l.Release("pool", "machine", now)
		}
	})
	b.Run("renew one of 100", func(b *testing.B) {
		l := permits.NewLedger(100, time.Minute)
		for i := range 100 {
			l.Acquire("pool", strconv.Itoa(i), now)
		}
		b.ReportAllocs()
		for b.Loop() {
			l.Acquire("pool", "42", now)
		}
	})
	b.Run("refused by one", func(b *testing.B) {
		l := permits.NewLedger(1, time.Minute)
		l.Acquire("pool", "other", now)
		b.ReportAllocs()
		for b.Loop() {
			l.Acquire("pool", "machine", now)
		}
	})
	b.Run("parallel distinct keys", func(b *testing.B) {
		l := permits.NewLedger(1, time.Minute)
		var next atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			key := "pool-" + strconv.FormatInt(next.Add(1), 10)
			for p.Next() {
				l.Acquire(key, "machine", now)
				l.Release(key, "machine", now)
			}
		})
	})
}
