// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gardener/machine-controller-manager/internal/permits"
)

const (
	stale   = time.Hour
	janitor = 10 * time.Minute
)

// pass advances the time of the synctest bubble by d.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// giver runs f in a synctest bubble with a giver that has one permit under "pool".
func giver(t *testing.T, f func(t *testing.T, pg permits.PermitGiver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pg := permits.NewPermitGiver(stale, janitor)
		pg.RegisterPermits("pool", 1)
		f(t, pg)
	})
}

// answer is the result of a TryPermit in another goroutine.
type answer struct {
	granted bool
	after   time.Duration
}

// try calls TryPermit in a goroutine, and returns when the call has returned or waits.
func try(pg permits.PermitGiver, key string, timeout time.Duration) <-chan answer {
	got, began := make(chan answer, 1), time.Now()
	go func() {
		ok := pg.TryPermit(key, timeout)
		got <- answer{ok, time.Since(began)}
	}()
	synctest.Wait()
	return got
}

func TestTryPermit_AnySequence_WaitsInOrder(t *testing.T) {
	cases := map[string]func(t *testing.T, pg permits.PermitGiver){
		"a free permit is taken at once": func(t *testing.T, pg permits.PermitGiver) {
			require.Equal(t, answer{true, 0}, <-try(pg, "pool", time.Hour))
		},
		"an unknown key is refused at once": func(t *testing.T, pg permits.PermitGiver) {
			require.Equal(t, answer{false, 0}, <-try(pg, "other", time.Hour))
		},
		"a taken permit is waited for until the timeout": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			require.Equal(t, answer{false, time.Second}, <-try(pg, "pool", time.Second))
		},
		"a release wakes a waiter at once": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			waiting := try(pg, "pool", time.Minute)
			pass(7 * time.Second)
			pg.ReleasePermit("pool")
			require.Equal(t, answer{true, 7 * time.Second}, <-waiting)
			require.False(t, pg.TryPermit("pool", 0), "the permit was handed over, not freed")
		},
		"waiting calls get permits in order of arrival": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			first, second := try(pg, "pool", time.Minute), try(pg, "pool", time.Minute)
			pg.ReleasePermit("pool")
			require.False(t, pg.TryPermit("pool", 0))
			require.True(t, (<-first).granted)
			require.Empty(t, second)
			pg.ReleasePermit("pool")
			require.True(t, (<-second).granted)
		},
		"a call that timed out gets no permit later": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			require.False(t, (<-try(pg, "pool", time.Second)).granted)
			pg.ReleasePermit("pool")
			require.True(t, pg.TryPermit("pool", 0), "the permit is free")
		},
		"a key without permits is refused at once": func(t *testing.T, pg permits.PermitGiver) {
			for i, n := range []int{0, -1, math.MinInt} {
				key := fmt.Sprint(i)
				pg.RegisterPermits(key, n)
				require.Equal(t, answer{false, 0}, <-try(pg, key, time.Hour))
				pg.ReleasePermit(key)
				require.False(t, pg.TryPermit(key, 0))
			}
		},
		"many permits may be taken": func(t *testing.T, pg permits.PermitGiver) {
			pg.RegisterPermits("many", math.MaxInt)
			for range 1000 {
				require.True(t, pg.TryPermit("many", 0))
			}
		},
		"registering again keeps the first number": func(t *testing.T, pg permits.PermitGiver) {
			pg.RegisterPermits("pool", 5)
			require.True(t, pg.TryPermit("pool", 0))
			require.False(t, pg.TryPermit("pool", 0))
		},
		"releasing a free permit adds none": func(t *testing.T, pg permits.PermitGiver) {
			pg.ReleasePermit("pool")
			pg.ReleasePermit("unknown")
			require.True(t, pg.TryPermit("pool", 0))
			require.False(t, pg.TryPermit("pool", 0))
			require.False(t, pg.TryPermit("unknown", 0))
		},
		"a deleted key is unknown until it is registered again": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			pg.DeletePermits("pool")
			require.False(t, pg.TryPermit("pool", 0))
			pg.ReleasePermit("pool")
			pg.RegisterPermits("pool", 2)
			require.True(t, pg.TryPermit("pool", 0))
			require.True(t, pg.TryPermit("pool", 0))
		},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) { giver(t, f) })
	}
}

func TestPermitGiver_StaleKeys_AreRemoved(t *testing.T) {
	cases := map[string]func(t *testing.T, pg permits.PermitGiver){
		"an unused key is known for the whole time": func(t *testing.T, pg permits.PermitGiver) {
			pass(stale)
			require.True(t, pg.TryPermit("pool", 0))
		},
		"and unknown after it": func(t *testing.T, pg permits.PermitGiver) {
			pass(stale - time.Second)
			pg.RegisterPermits("other", 1) // removes stale keys
			pass(time.Second + 1)
			require.False(t, pg.TryPermit("pool", 0))
			pg.RegisterPermits("pool", 2) // again, with another number
			require.True(t, pg.TryPermit("pool", 0))
			require.True(t, pg.TryPermit("pool", 0))
		},
		"registering again is a use": func(t *testing.T, pg permits.PermitGiver) {
			pass(stale)
			pg.RegisterPermits("pool", 1)
			pass(stale)
			require.True(t, pg.TryPermit("pool", 0))
		},
		"a release is a use": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			pass(3 * stale)
			pg.ReleasePermit("pool")
			pass(stale)
			require.True(t, pg.TryPermit("pool", 0))
		},
		"a permit given to a waiting call is a use": func(t *testing.T, pg permits.PermitGiver) {
			require.True(t, pg.TryPermit("pool", 0))
			waiting := try(pg, "pool", 2*stale)
			pg.ReleasePermit("pool")
			require.True(t, (<-waiting).granted)
			pg.ReleasePermit("pool")
			pass(stale)
			require.True(t, pg.TryPermit("pool", 0))
		},
		"releasing a free permit is not a use": func(t *testing.T, pg permits.PermitGiver) {
			pass(stale)
			pg.ReleasePermit("pool")
			pass(1)
			require.False(t, pg.TryPermit("pool", 0))
		},
		"memory is freed by later calls, once per period": func(t *testing.T, pg permits.PermitGiver) {
			for i := range 1000 {
				pg.RegisterPermits(fmt.Sprint(i), 1)
			}
			require.True(t, pg.TryPermit("7", 0))
			pass(stale)
			pg.RegisterPermits("pool", 1) // removes nothing
			pass(janitor - 1)
			pg.RegisterPermits("pool", 1)
			require.Equal(t, 1001, permits.Gates(pg), "not due yet")
			pass(1)
			pg.TryPermit("unknown", 0)
			require.Equal(t, 2, permits.Gates(pg), "the one in use and the one that is held")
			require.False(t, pg.TryPermit("7", 0), "still held")
		},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) { giver(t, f) })
	}
	for _, never := range []time.Duration{0, -1, math.MinInt64} {
		synctest.Test(t, func(t *testing.T) {
			pg := permits.NewPermitGiver(never, never)
			pg.RegisterPermits("pool", 1)
			pass(1000 * time.Hour)
			require.True(t, pg.TryPermit("pool", 0), "a timeout of %v forgets nothing", never)
		})
	}
	synctest.Test(t, func(t *testing.T) { // without a janitor frequency the timeout is the frequency
		pg := permits.NewPermitGiver(time.Hour, 0)
		pg.RegisterPermits("a", 1)
		pass(time.Hour / 2)
		pg.RegisterPermits("b", 1)
		pass(time.Hour/2 + 1)
		pg.RegisterPermits("c", 1)
		require.Equal(t, 2, permits.Gates(pg), "a is gone")
		pass(time.Hour / 2)
		pg.RegisterPermits("c", 1)
		require.Equal(t, 2, permits.Gates(pg), "b is stale, and not removed yet")
		pass(time.Hour / 2)
		pg.RegisterPermits("c", 1)
		require.Equal(t, 1, permits.Gates(pg))
	})
}

func TestClose_Giver_ReturnsFalse(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		require.True(t, pg.TryPermit("pool", 0))
		waiting := try(pg, "pool", time.Hour)
		pg.Close()
		require.Equal(t, answer{false, 0}, <-waiting, "a waiter is told at once")
		require.Equal(t, answer{false, 0}, <-try(pg, "pool", time.Hour))
		pg.ReleasePermit("pool")
		pg.RegisterPermits("pool", 1)
		require.False(t, pg.TryPermit("pool", 0))
		pass(2 * stale)
		require.False(t, pg.TryPermit("pool", 0))
		pg.DeletePermits("pool")
		pg.Close()
		require.Zero(t, permits.Gates(pg))
	})
}

// TestPermitGiver_NeverClosed_HasNoGoroutine asserts that synctest panics if a goroutine of the
// bubble does not end.
func TestPermitGiver_NeverClosed_HasNoGoroutine(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		require.True(t, pg.TryPermit("pool", time.Second))
		require.False(t, pg.TryPermit("pool", time.Second))
		pass(2 * stale)
	})
}

func TestTryPermit_Free_NoAllocation(t *testing.T) {
	pg := permits.NewPermitGiver(stale, janitor)
	key := fmt.Sprint("pool-", t.Name())
	pg.RegisterPermits(key, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		pg.TryPermit(key, time.Second)
		pg.ReleasePermit(key)
	}))
	require.True(t, pg.TryPermit(key, 0))
	require.Zero(t, testing.AllocsPerRun(100, func() { pg.TryPermit(key, 0) }), "nor does a refusal without waiting")
}
