// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

var (
	_ func(codes.Code) string                 = codes.Code.String
	_ func(codes.Code, string) *status.Status = status.New
	_ func(codes.Code, string) error          = status.Error
	_ func() error                            = func() error { return status.WrapError(codes.Internal, "", nil) } // MCM returns *Status
	_ func(error) (*status.Status, bool)      = status.FromError
	_ func(*status.Status) codes.Code         = (*status.Status).Code
	_ func(*status.Status) string             = (*status.Status).Message
	_ func(*status.Status) error              = (*status.Status).Cause
	_ func(*status.Status) string             = (*status.Status).Error
	_ error                                   = (*status.Status)(nil)
)

func TestCodes_NumbersAndNames_AsMCM(t *testing.T) {
	names := strings.Fields("OK Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied ResourceExhausted " +
		"FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss Unauthenticated Uninitialized")
	for i, code := range []codes.Code{
		codes.OK, codes.Canceled, codes.Unknown, codes.InvalidArgument, codes.DeadlineExceeded, codes.NotFound, codes.AlreadyExists,
		codes.PermissionDenied, codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange, codes.Unimplemented,
		codes.Internal, codes.Unavailable, codes.DataLoss, codes.Unauthenticated, codes.Uninitialized,
	} {
		require.Equal(t, codes.Code(i), code)
		require.Equal(t, names[i], code.String())
	}
}
