// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/internal/permits"
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
