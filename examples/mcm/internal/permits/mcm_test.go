// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gardener/machine-controller-manager/internal/permits"
)

// The tests in this file fail on the behavior of MCM that docs/parity.md describes.

// TestPermitGiver_KeyInUse_IsNotStale asserts that a key is stale some time after its last use, not
// after its registration.
func TestPermitGiver_KeyInUse_IsNotStale(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		for range 10 { // in use all the time, registered long ago
			pass(stale / 2)
			require.True(t, pg.TryPermit("pool", 0))
			pg.ReleasePermit("pool")
		}
		pass(time.Millisecond)
		pg.RegisterPermits("other", 1) // removes stale keys
		require.True(t, pg.TryPermit("pool", 0))
	})
}

// TestPermitGiver_PermitTakenOrAwaited_KeyIsKept asserts that a key is kept while a permit of it is
// taken or awaited, so registering it again makes no permit available.
func TestPermitGiver_PermitTakenOrAwaited_KeyIsKept(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		require.True(t, pg.TryPermit("pool", 0))
		waiting := try(pg, "pool", 100*stale)
		pass(10 * stale)
		pg.RegisterPermits("other", 1) // removes stale keys
		pg.RegisterPermits("pool", 1)
		require.False(t, pg.TryPermit("pool", 0))
		pg.ReleasePermit("pool")
		require.True(t, (<-waiting).granted)
		pass(10 * stale)
		pg.RegisterPermits("pool", 1)
		require.False(t, pg.TryPermit("pool", 0))
	})
}

// TestPermitGiver_DeleteOrClose_EndsWaitingCalls asserts that waiting calls return false when their
// key is deleted or the giver is closed.
func TestPermitGiver_DeleteOrClose_EndsWaitingCalls(t *testing.T) {
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

// TestPermitGiver_CloseAndDelete_Repeatable asserts that closing and deleting may be repeated, also
// at the same time.
func TestPermitGiver_CloseAndDelete_Repeatable(t *testing.T) {
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

// TestPermitGiver_NoTimeout_DoesNotWait asserts that a call with a timeout of zero or less returns
// at once.
func TestPermitGiver_NoTimeout_DoesNotWait(t *testing.T) {
	for _, timeout := range []time.Duration{0, -1, -time.Hour} {
		giver(t, func(t *testing.T, pg permits.PermitGiver) {
			require.Equal(t, answer{true, 0}, <-try(pg, "pool", timeout))
			require.Equal(t, answer{false, 0}, <-try(pg, "pool", timeout))
		})
	}
}

func TestPermitGiver_Release_EndsTheWait(t *testing.T) {
	giver(t, func(t *testing.T, pg permits.PermitGiver) {
		require.True(t, pg.TryPermit("pool", 0))
		waiting := try(pg, "pool", time.Minute)
		pass(time.Nanosecond)
		pg.ReleasePermit("pool")
		require.Equal(t, answer{true, time.Nanosecond}, <-waiting)
	})
}

func TestPermitGiver_EmptyKey_IsLimited(t *testing.T) {
	pg := permits.NewPermitGiver(stale, janitor)
	pg.RegisterPermits("", 1)
	require.True(t, pg.TryPermit("", 0))
	require.False(t, pg.TryPermit("", 0))
}
