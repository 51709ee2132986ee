// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

// numbered has every code with its number and name. Other programs store both, so no line may
// change.
var numbered = []struct {
	number uint32
	name   string
	code   codes.Code
}{
	{0, "OK", codes.OK},
	{1, "Canceled", codes.Canceled},
	{2, "Unknown", codes.Unknown},
	{3, "InvalidArgument", codes.InvalidArgument},
	{4, "DeadlineExceeded", codes.DeadlineExceeded},
	{5, "NotFound", codes.NotFound},
	{6, "AlreadyExists", codes.AlreadyExists},
	{7, "PermissionDenied", codes.PermissionDenied},
	{8, "ResourceExhausted", codes.ResourceExhausted},
	{9, "FailedPrecondition", codes.FailedPrecondition},
	{10, "Aborted", codes.Aborted},
	{11, "OutOfRange", codes.OutOfRange},
	{12, "Unimplemented", codes.Unimplemented},
	{13, "Internal", codes.Internal},
	{14, "Unavailable", codes.Unavailable},
	{15, "DataLoss", codes.DataLoss},
	{16, "Unauthenticated", codes.Unauthenticated},
	{17, "Uninitialized", codes.Uninitialized},
}

// future has unknown codes.
var future = []codes.Code{18, 19, 255, 256, math.MaxInt32, math.MaxUint32}

func TestCode_NumbersAndNames_AreThoseOfMCM(t *testing.T) {
	t.Parallel()
	for _, c := range numbered {
		require.EqualValues(t, c.number, c.code)
		require.Equal(t, c.name, c.code.String())
		parsed, ok := codes.Parse(c.name)
		require.True(t, ok)
		require.Equal(t, c.code, parsed)
		require.Equal(t, c.code, codes.All()[c.number])
	}
	require.Len(t, codes.All(), len(numbered))
}

func TestCode_UnknownNumber_IsPrintedAndParsed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Code(18)", codes.Code(18).String())
	for _, c := range future {
		require.Equal(t, "Code("+strconv.FormatUint(uint64(c), 10)+")", c.String())
		parsed, ok := codes.Parse(c.String())
		require.True(t, ok)
		require.Equal(t, c, parsed)
	}
}

func TestParse_EachText_HasItsCode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want codes.Code
		ok   bool
	}{
		"the number zero":         {"Code(0)", codes.OK, true},
		"a name of the future":    {"Throttled", codes.Unknown, false},
		"a negative number":       {"Code(-1)", codes.Unknown, false},
		"a leading zero":          {"Code(05)", codes.Unknown, false},
		"something after the end": {"Code(5))", codes.Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := codes.Parse(tc.in)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.ok, ok)
		})
	}
}
