// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machinist-dev/machinist/permits"
)

// BenchmarkTryRelease measures TryPermit and ReleasePermit of a free permit.
func BenchmarkTryRelease(b *testing.B) {
	b.Run("single", func(b *testing.B) {
		pg := permits.NewPermitGiver(time.Hour, time.Minute)
		pg.RegisterPermits("pool", 1)
		b.ReportAllocs()
		for b.Loop() {
			pg.TryPermit("pool", time.Second)
			pg.ReleasePermit("pool")
		}
	})
	b.Run("parallel distinct keys", func(b *testing.B) {
		pg := permits.NewPermitGiver(time.Hour, time.Minute)
		var next atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			key := "pool-" + strconv.FormatInt(next.Add(1), 10)
			pg.RegisterPermits(key, 1)
			for p.Next() {
				pg.TryPermit(key, time.Second)
				pg.ReleasePermit(key)
			}
		})
	})
	for _, n := range []int{64, 1} {
		b.Run("parallel one key "+strconv.Itoa(n)+" permits", func(b *testing.B) {
			pg := permits.NewPermitGiver(time.Hour, time.Minute)
			pg.RegisterPermits("pool", n)
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if pg.TryPermit("pool", time.Minute) {
						pg.ReleasePermit("pool")
					}
				}
			})
		})
	}
	b.Run("refused", func(b *testing.B) {
		pg := permits.NewPermitGiver(time.Hour, time.Minute)
		pg.RegisterPermits("pool", 1)
		pg.TryPermit("pool", 0)
		b.ReportAllocs()
		for b.Loop() {
			pg.TryPermit("pool", 0)
		}
	})
}

// BenchmarkSweep measures a call that looks for stale keys among 10,000.
func BenchmarkSweep(b *testing.B) {
	pg := permits.NewPermitGiver(time.Hour, time.Hour)
	for i := range 10_000 {
		pg.RegisterPermits(strconv.Itoa(i), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		permits.Sweep(pg)
	}
}

func BenchmarkLedger(b *testing.B) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
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
