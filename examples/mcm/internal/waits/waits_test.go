// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gardener/machine-controller-manager/pkg/util/backoff"
)

func TestWaitUntil_Pauses_DoubleUpToTheLongestAndTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began, failed := time.Now(), errors.New("no")
		err := backoff.WaitUntil(t.Context(), time.Second, 3*time.Second, 12*time.Second, func() error {
			at = append(at, time.Since(began)/time.Second)
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.Equal(t, []time.Duration{0, 1, 3, 6, 9, 12}, at)
	})
}

func TestWaitUntil_ContextEndsOrSuccess_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		require.ErrorIs(t, backoff.WaitUntil(ctx, 0, 0, 0, func() error { calls++; return errors.New("no") }), context.DeadlineExceeded)
		require.Greater(t, calls, 1)
		require.NoError(t, backoff.WaitUntil(ctx, time.Hour, time.Hour, time.Hour, func() error { return nil }))
	})
}
