// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

func TestError_Text_IsStable(t *testing.T) {
	t.Parallel()
	for _, c := range append(codes.All()[1:], codes.Code(99)) {
		err := status.Error(c, "some [nested] message")
		require.EqualError(t, err, "machine codes error: code = ["+c.String()+"] message = [some [nested] message]")

		s, ok := err.(*status.Status) //nolint:errorlint // callers of the reference system do this
		require.True(t, ok)
		require.Equal(t, c, s.Code())
		require.Equal(t, "some [nested] message", s.Message())
		require.NoError(t, s.Cause())
		require.Equal(t, s, status.New(c, "some [nested] message"))
	}
}

func TestError_CodeOK_IsNil(t *testing.T) {
	t.Parallel()
	require.True(t, status.Error(codes.OK, "fine") == nil)
	require.True(t, status.WrapError(codes.OK, "fine", nil) == nil)
	require.True(t, status.New(codes.OK, "fine").Err() == nil)
	require.Equal(t, status.Error(codes.Internal, "msg"), status.WrapError(codes.Internal, "msg", nil), "no cause")
	require.Equal(t, codes.OK, status.New(codes.OK, "fine").Code())
}

func TestWrapError_Cause_IsReachable(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("sdk: %w", context.Canceled)
	err := status.WrapError(codes.Internal, "msg", cause)
	require.EqualError(t, err, "machine codes error: code = [Internal] message = [msg]")
	require.ErrorIs(t, err, context.Canceled)
	s, ok := errors.AsType[*status.Status](err)
	require.True(t, ok)
	require.Equal(t, cause, s.Cause())
	require.Equal(t, cause, s.Unwrap())
}

func TestWrapError_CodeOKWithCause_KeepsTheCause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause error
		want  codes.Code
	}{
		"a foreign cause": {errors.New("boom"), codes.Unknown},
		"a typed cause":   {status.Error(codes.NotFound, "gone"), codes.NotFound},
		"a context error": {context.Canceled, codes.Canceled},
		"a nil status":    {(*status.Status)(nil), codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := status.WrapError(codes.OK, "msg", tc.cause)
			require.Error(t, err)
			require.Equal(t, tc.want, codes.Of(err))
			require.Equal(t, tc.cause, errors.Unwrap(err))
		})
	}
}

func TestStatus_Nil_IsSuccess(t *testing.T) {
	t.Parallel()
	var s *status.Status
	require.Equal(t, codes.OK, s.Code())
	require.Empty(t, s.Message())
	require.NoError(t, s.Cause())
	require.NoError(t, s.Unwrap())
	require.True(t, s.Err() == nil)
	require.Equal(t, "machine codes error: code = [OK] message = []", s.Error())
	data, err := s.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, "null", string(data))
	require.Error(t, s.UnmarshalJSON([]byte(`{}`)))
	require.Equal(t, s.Error(), new(status.Status).Error())
}
