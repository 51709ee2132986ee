// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// throttled is an error of a cloud with a requested wait.
type throttled struct{ after time.Duration }

func (throttled) Error() string               { return "slow down" }
func (e throttled) RetryAfter() time.Duration { return e.after }

func TestRetryAfterOf_EachError_ReturnsTheTime(t *testing.T) {
	t.Parallel()
	plain := errors.New("x")
	for name, tc := range map[string]struct {
		err  error
		want time.Duration
	}{
		"attached and wrapped":       {fmt.Errorf("a: %w", codes.WithRetryAfter(plain, time.Minute)), time.Minute},
		"an error type of a cloud":   {throttled{time.Second}, time.Second},
		"the outer of two":           {codes.WithRetryAfter(throttled{time.Second}, time.Minute), time.Minute},
		"the first of joined errors": {errors.Join(plain, throttled{1}, throttled{2}), 1},
		"a negative time is none":    {throttled{-time.Second}, 0},
		"attaching nothing changes nothing": {
			codes.WithRetryAfter(codes.WithRetryAfter(plain, time.Minute), 0), time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, codes.RetryAfterOf(tc.err))
		})
	}
}

func TestWithRetryAfter_Error_KeepsCodeAndText(t *testing.T) {
	t.Parallel()
	inner := status.WrapError(codes.ResourceExhausted, "quota", context.Canceled)
	err := codes.WithRetryAfter(inner, time.Minute)
	require.EqualError(t, err, inner.Error())
	require.Equal(t, codes.ResourceExhausted, codes.Of(err))
	require.ErrorIs(t, err, context.Canceled)
	s, ok := errors.AsType[*status.Status](err)
	require.True(t, ok)
	require.Equal(t, "quota", s.Message())
	require.NoError(t, codes.WithRetryAfter(nil, time.Minute))
}
