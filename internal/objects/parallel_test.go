// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/internal/objects"
)

func TestInParallel_Limit_NoMoreAtATime(t *testing.T) {
	for limit, want := range map[int]int32{1: 1, 4: 4, 0: 16, -1: 16} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int32
			bad := errors.New("bad")
			errs := objects.InParallel(t.Context(), limit, 40, func(i int) error {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second) // in the time of the bubble
				now.Add(-1)
				if i == 3 {
					return bad
				}
				return nil
			})
			require.Len(t, errs, 40)
			for i, err := range errs {
				require.Equal(t, i == 3, errors.Is(err, bad))
			}
			require.Equal(t, want, most.Load())
		})
	}
	require.Empty(t, objects.InParallel(t.Context(), 4, 0, nil))
}

func TestInParallel_ContextEnds_TheRestIsNotSent(t *testing.T) {
	for _, limit := range []int{1, 4} {
		ctx, cancel := context.WithCancel(t.Context())
		var sent atomic.Int32
		errs := objects.InParallel(ctx, limit, 100, func(int) error {
			sent.Add(1)
			cancel()
			return nil
		})
		require.LessOrEqual(t, sent.Load(), int32(limit)) //nolint:gosec // it is small
		require.ErrorContains(t, errs[99], "not sent")
	}
}

// TestInParallel_SendPanics_CallerPanicsWithTheStack lets the caller recover, and not the process end.
func TestInParallel_SendPanics_CallerPanicsWithTheStack(t *testing.T) {
	for _, limit := range []int{1, 4} {
		func() {
			defer func() {
				value := recover()
				require.NotNil(t, value)
				if stack, ok := value.(interface{ Stack() []byte }); ok {
					require.Contains(t, string(stack.Stack()), "parallel_test.go")
					return
				}
				require.Equal(t, "bad", value)
				require.Equal(t, 1, limit, "that of another goroutine has its stack")
			}()
			objects.InParallel(t.Context(), limit, 8, func(int) error { panic("bad") })
		}()
	}
}
