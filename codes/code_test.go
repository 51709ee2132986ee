// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

// numbered has every code with its number and name. Other programs store both, so no line may
// change. The wait is that of the first failure, as in MCM.
var numbered = []struct {
	number   uint32
	name     string
	code     codes.Code
	category codes.Category
	wait     time.Duration
}{
	{0, "OK", codes.OK, codes.Proceed, 0},
	{1, "Canceled", codes.Canceled, codes.RetryLater, 3 * time.Minute},
	{2, "Unknown", codes.Unknown, codes.RetrySoon, 5 * time.Second},
	{3, "InvalidArgument", codes.InvalidArgument, codes.FixRequest, 3 * time.Minute},
	{4, "DeadlineExceeded", codes.DeadlineExceeded, codes.RetrySoon, 5 * time.Second},
	{5, "NotFound", codes.NotFound, codes.TreatAsAbsent, 3 * time.Minute},
	{6, "AlreadyExists", codes.AlreadyExists, codes.Investigate, 3 * time.Minute},
	{7, "PermissionDenied", codes.PermissionDenied, codes.FixCredentials, 3 * time.Minute},
	{8, "ResourceExhausted", codes.ResourceExhausted, codes.WaitForCapacity, 10 * time.Minute},
	{9, "FailedPrecondition", codes.FailedPrecondition, codes.RetryLater, 3 * time.Minute},
	{10, "Aborted", codes.Aborted, codes.RetrySoon, 5 * time.Second},
	{11, "OutOfRange", codes.OutOfRange, codes.Investigate, 3 * time.Minute},
	{12, "Unimplemented", codes.Unimplemented, codes.TreatAsAbsent, 3 * time.Minute},
	{13, "Internal", codes.Internal, codes.RetryLater, 3 * time.Minute},
	{14, "Unavailable", codes.Unavailable, codes.RetrySoon, 5 * time.Second},
	{15, "DataLoss", codes.DataLoss, codes.Investigate, 3 * time.Minute},
	{16, "Unauthenticated", codes.Unauthenticated, codes.FixCredentials, 3 * time.Minute},
	{17, "Uninitialized", codes.Uninitialized, codes.Investigate, 3 * time.Minute},
}

// future has unknown codes.
var future = []codes.Code{18, 19, 255, 256, math.MaxInt32, math.MaxUint32}

func TestCode_NumbersAndNames_AreThoseOfMCM(t *testing.T) {
	t.Parallel()
	for _, c := range numbered {
		require.EqualValues(t, c.number, c.code)
		require.Equal(t, c.name, c.code.String())
		require.Equal(t, c.code, codes.All()[c.number])
	}
	require.Len(t, codes.All(), len(numbered))
}

func TestParse_OtherText_IsUnknown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Throttled", "Code(-1)", "Code(05)", "Code(5))"} {
		got, ok := codes.Parse(text)
		require.Equal(t, codes.Unknown, got, text)
		require.False(t, ok, text)
	}
	zero, ok := codes.Parse("Code(0)")
	require.True(t, ok)
	require.Equal(t, codes.OK, zero)
}

func TestCategory_EveryCode_MatchesPackageComment(t *testing.T) {
	t.Parallel()
	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, c := range numbered {
		require.Equal(t, c.category, c.code.Category(), c.name)
		require.Contains(t, string(comment), fmt.Sprintf("//\t%2d  %-18s  %s\n", c.number, c.name, c.category))
	}
	for _, c := range future {
		require.Equal(t, codes.RetryLater, c.Category())
	}
	require.Equal(t, codes.RetryLater, codes.Category(0), "the zero category is the cautious one")
	require.Equal(t, "Category(200)", codes.Category(200).String())
}

func TestCode_JSONAndText_RoundTrip(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Code(4294967295)", codes.Code(math.MaxUint32).String())
	for _, c := range append(codes.All(), future...) {
		data, err := json.Marshal(c)
		require.NoError(t, err)
		require.Equal(t, `"`+c.String()+`"`, string(data))
		var back codes.Code
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, c, back)
		parsed, ok := codes.Parse(c.String())
		require.True(t, ok)
		require.Equal(t, c, parsed)
	}
}

func TestCode_UnmarshalJSON_AcceptsNamesAndNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]codes.Code{
		`"NotFound"`:  codes.NotFound,
		`5`:           codes.NotFound,
		`4711`:        codes.Code(4711),
		`"Throttled"`: codes.Unknown,
		`null`:        codes.Internal, // as before
	} {
		got := codes.Internal
		require.NoError(t, json.Unmarshal([]byte(in), &got), in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{`4294967296`, `-1`, `1e1`, `{"code":5}`, `"Not`} {
		got := codes.Internal
		require.Error(t, json.Unmarshal([]byte(in), &got), in)
		require.Equal(t, codes.Internal, got, in)
	}
}

func TestCode_UnmarshalNil_ReturnsError(t *testing.T) {
	t.Parallel()
	var noCode *codes.Code
	var code codes.Code
	require.Error(t, noCode.UnmarshalText([]byte("NotFound")))
	require.Error(t, noCode.UnmarshalJSON([]byte("5")))
	require.Error(t, code.UnmarshalJSON(nil))
	require.Error(t, code.UnmarshalJSON([]byte(`"`)))
}

func FuzzCodeJSON(f *testing.F) {
	seeds := []string{`"NotFound"`, `5`, `99`, `"Code(99)"`, `"Code(05)"`, `-1`, `1e3`, `null`, `{}`, `"\ud800"`, ` 7 `}
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c codes.Code
		if json.Unmarshal(data, &c) != nil {
			require.Equal(t, codes.OK, c)
			return
		}
		again, err := json.Marshal(c)
		require.NoError(t, err)
		var back codes.Code
		require.NoError(t, json.Unmarshal(again, &back))
		require.Equal(t, c, back)
		parsed, ok := codes.Parse(c.String())
		require.True(t, ok)
		require.Equal(t, c, parsed)
	})
}
