// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

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
