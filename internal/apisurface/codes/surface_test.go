// SPDX-License-Identifier: Apache-2.0

// Package codes_test holds the names of codes and codes/status that drivers use,
// in the way in which they use them.
package codes_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

var (
	_ func(codes.Code) string                 = codes.Code.String
	_ func(codes.Code, string) *status.Status = status.New
	_ func(codes.Code, string) error          = status.Error
	_ func(codes.Code, string, error) error   = status.WrapError
	_ func(error) (*status.Status, bool)      = status.FromError
	_ func(*status.Status) codes.Code         = (*status.Status).Code
	_ func(*status.Status) string             = (*status.Status).Message
	_ func(*status.Status) error              = (*status.Status).Cause
	_ func(*status.Status) string             = (*status.Status).Error
	_ error                                   = (*status.Status)(nil)
)

func TestCodes_NumbersAndNames_AsMCM(t *testing.T) {
	for i, row := range []struct {
		code codes.Code
		name string
	}{
		{codes.OK, "OK"},
		{codes.Canceled, "Canceled"},
		{codes.Unknown, "Unknown"},
		{codes.InvalidArgument, "InvalidArgument"},
		{codes.DeadlineExceeded, "DeadlineExceeded"},
		{codes.NotFound, "NotFound"},
		{codes.AlreadyExists, "AlreadyExists"},
		{codes.PermissionDenied, "PermissionDenied"},
		{codes.ResourceExhausted, "ResourceExhausted"},
		{codes.FailedPrecondition, "FailedPrecondition"},
		{codes.Aborted, "Aborted"},
		{codes.OutOfRange, "OutOfRange"},
		{codes.Unimplemented, "Unimplemented"},
		{codes.Internal, "Internal"},
		{codes.Unavailable, "Unavailable"},
		{codes.DataLoss, "DataLoss"},
		{codes.Unauthenticated, "Unauthenticated"},
		{codes.Uninitialized, "Uninitialized"},
	} {
		require.Equal(t, codes.Code(i), row.code)
		require.Equal(t, row.name, row.code.String())
	}
}

func TestStatus_Errors_ReadAndCompare(t *testing.T) {
	const text = "machine codes error: code = [NotFound] message = [no such VM]"
	cause := errors.New("404")
	for _, err := range []error{
		status.Error(codes.NotFound, "no such VM"),
		status.WrapError(codes.NotFound, "no such VM", cause),
		status.New(codes.NotFound, "no such VM"),
	} {
		require.EqualError(t, err, text)
		var s *status.Status
		require.ErrorAs(t, err, &s)
		require.Equal(t, codes.NotFound, s.Code())
		require.Equal(t, "no such VM", s.Message())
		require.Same(t, s, err, "drivers assert the type without errors.As")
	}
	wrapped, ok := status.FromError(status.WrapError(codes.NotFound, "no such VM", cause))
	require.True(t, ok)
	require.ErrorIs(t, wrapped.Cause(), cause)
}

func TestFromError_TextsNilForeign_Read(t *testing.T) {
	s, ok := status.FromError(errors.New("machine codes error: code = [Internal] message = [x]"))
	require.True(t, ok)
	require.Equal(t, codes.Internal, s.Code())
	require.Equal(t, "x", s.Message())

	s, ok = status.FromError(fmt.Errorf("something else"))
	require.False(t, ok)
	require.Equal(t, codes.Unknown, s.Code())

	s, ok = status.FromError(nil)
	require.True(t, ok)
	require.Nil(t, s)
}
