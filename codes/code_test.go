// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
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
		got, ok := codes.Parse(tc.in)
		require.Equal(t, tc.want, got, name)
		require.Equal(t, tc.ok, ok, name)
	}
}

func TestCategory_EveryCode_MatchesPackageComment(t *testing.T) {
	t.Parallel()
	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, c := range numbered {
		require.Equal(t, c.category, c.code.Category(), c.name)
		require.Equal(t, c.code == codes.OK, c.code.Category() == codes.Proceed, "only success proceeds")
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
	for _, c := range append(codes.All(), future...) {
		data, err := json.Marshal(c)
		require.NoError(t, err)
		require.Equal(t, `"`+c.String()+`"`, string(data))
		var back codes.Code
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, c, back)
	}
}

func TestCode_UnmarshalJSON_AcceptsNamesAndNumbers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want codes.Code
		fail bool
	}{
		"a name":                            {in: `"NotFound"`, want: codes.NotFound},
		"a number":                          {in: `5`, want: codes.NotFound},
		"a number of the future":            {in: `4711`, want: codes.Code(4711)},
		"a name of the future":              {in: `"Throttled"`, want: codes.Unknown},
		"an empty name":                     {in: `""`, want: codes.Unknown},
		"null leaves what was there":        {in: `null`, want: codes.Internal},
		"too large a number is an error":    {in: `4294967296`, want: codes.Internal, fail: true},
		"a negative number is an error":     {in: `-1`, want: codes.Internal, fail: true},
		"an exponent is an error":           {in: `1e1`, want: codes.Internal, fail: true},
		"an object is an error":             {in: `{"code":5}`, want: codes.Internal, fail: true},
		"broken JSON leaves what was there": {in: `"Not`, want: codes.Internal, fail: true},
	} {
		got := codes.Internal
		err := json.Unmarshal([]byte(tc.in), &got)
		require.Equal(t, tc.fail, err != nil, "%v", err)
		require.Equal(t, tc.want, got, name)
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
	require.NoError(t, code.UnmarshalText(nil))
	require.Equal(t, codes.Unknown, code)
}

func FuzzCodeJSON(f *testing.F) {
	for _, seed := range []string{`"NotFound"`, `5`, `99`, `"Code(99)"`, `"Code(05)"`, `-1`, `1e3`, `null`, `{}`, `"\ud800"`, ` 7 `} {
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
