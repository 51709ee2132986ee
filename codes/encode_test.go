// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := codes.Internal
			err := json.Unmarshal([]byte(tc.in), &got)
			require.Equal(t, tc.fail, err != nil, "%v", err)
			require.Equal(t, tc.want, got)
		})
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
