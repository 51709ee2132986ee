// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gardener/machine-controller-manager/internal/permits"
)

const hammers = 16

// TestPermitGiver_Concurrent_IsSafe has timeouts that race with releases, while stale keys are
// removed. No key has more permits than registered.
func TestPermitGiver_Concurrent_IsSafe(t *testing.T) {
	const limit = 2
	pg := permits.NewPermitGiver(20*time.Microsecond, time.Nanosecond)
	var in [3]atomic.Int32
	var got atomic.Int32
	var wg sync.WaitGroup
	for i := range hammers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			for range 1000 {
				k := rng.IntN(len(in))
				key := fmt.Sprint(k)
				pg.RegisterPermits(key, limit)
				if !pg.TryPermit(key, time.Duration(rng.IntN(20_000))) {
					continue
				}
				got.Add(1)
				if n := in[k].Add(1); n > limit {
					t.Errorf("%d holders, limit %d", n, limit)
				}
				in[k].Add(-1)
				pg.ReleasePermit(key)
			}
		})
	}
	wg.Wait()
	require.NotZero(t, got.Load())
	for k := range in {
		pg.DeletePermits(fmt.Sprint(k))
	}
	require.Zero(t, permits.Gates(pg))
}

// TestPermitGiver_TimeoutRaces_LoseNoPermit has timeouts that race with releases. With a giver that
// removes no key, all permits are free at the end.
func TestPermitGiver_TimeoutRaces_LoseNoPermit(t *testing.T) {
	pg := permits.NewPermitGiver(0, 0)
	pg.RegisterPermits("pool", 2)
	var wg sync.WaitGroup
	for i := range hammers {
		wg.Go(func() {
			for n := range 500 {
				if pg.TryPermit("pool", time.Duration(1+(n*i)%5000)) {
					pg.ReleasePermit("pool")
				}
			}
		})
	}
	wg.Wait()
	require.True(t, pg.TryPermit("pool", 0))
	require.True(t, pg.TryPermit("pool", 0))
	require.False(t, pg.TryPermit("pool", 0))
}

func TestPermitGiver_CloseAndDeleteConcurrent_IsSafe(t *testing.T) {
	for round := range 100 {
		pg := permits.NewPermitGiver(stale, janitor)
		var wg sync.WaitGroup
		for range hammers {
			wg.Go(func() {
				for range 20 {
					pg.RegisterPermits("pool", 1)
					if pg.TryPermit("pool", 50*time.Microsecond) {
						pg.ReleasePermit("pool")
					}
				}
			})
		}
		wg.Go(func() {
			for range 10 {
				pg.DeletePermits("pool")
			}
		})
		if round%2 == 0 {
			wg.Go(pg.Close)
			wg.Go(pg.Close)
		}
		wg.Wait()
		pg.Close()
		require.False(t, pg.TryPermit("pool", time.Hour))
	}
}
