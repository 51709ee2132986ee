// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machinist-dev/machinist/permits"
)

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
