// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
		require.Equal(t, status.New(c, "some [nested] message"), s)
		require.NoError(t, s.Cause())
	}
}

func TestError_CodeOK_IsNil(t *testing.T) {
	t.Parallel()
	require.True(t, status.Error(codes.OK, "fine") == nil)
	require.True(t, status.WrapError(codes.OK, "fine", nil) == nil)
	require.Equal(t, codes.OK, status.New(codes.OK, "fine").Code())
}

func TestWrapError_Cause_IsReachable(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("sdk: %w", context.Canceled)
	err := status.WrapError(codes.Internal, "msg", cause)
	require.EqualError(t, err, "machine codes error: code = [Internal] message = [msg]")
	require.ErrorIs(t, err, context.Canceled)
	var s *status.Status
	require.ErrorAs(t, err, &s)
	require.Equal(t, cause, s.Cause())
}

func TestWrapError_CodeOKWithCause_KeepsTheCause(t *testing.T) {
	t.Parallel()
	for want, cause := range map[codes.Code]error{
		codes.Unknown:  (*status.Status)(nil),
		codes.NotFound: status.Error(codes.NotFound, "gone"),
		codes.Canceled: context.Canceled,
	} {
		err := status.WrapError(codes.OK, "msg", cause)
		require.Error(t, err)
		require.Equal(t, want, codes.Of(err))
		require.Equal(t, cause, errors.Unwrap(err))
	}
}

func TestStatus_Nil_IsSuccess(t *testing.T) {
	t.Parallel()
	var s *status.Status
	require.Equal(t, codes.OK, s.Code())
	require.Empty(t, s.Message())
	require.NoError(t, s.Cause())
	require.True(t, s.Err() == nil)
	require.Equal(t, "machine codes error: code = [OK] message = []", s.Error())
	data, err := s.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, "null", string(data))
	require.Error(t, s.UnmarshalJSON([]byte(`{}`)))
	require.Equal(t, s.Error(), new(status.Status).Error())
}

func TestStatus_MarshalJSON_Form(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*status.Status{
		`{"code":"NotFound","number":5,"message":"gone"}`: status.New(codes.NotFound, "gone"),
		`{"code":"OK","message":""}`:                      status.New(codes.OK, ""),
		`null`:                                            nil,
		`{"code":"Internal","number":13,"message":"a\ufffd","messageBytes":"Yf8="}`: status.New(codes.Internal, "a\xff"),
	} {
		data, err := json.Marshal(s)
		require.NoError(t, err, want)
		require.JSONEq(t, want, string(data))
	}
}

func TestStatus_UnmarshalJSON_EachInput(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]codes.Code{
		`{"code":"NotFound","number":13}`:  codes.NotFound,
		`{"code":"Throttled","number":99}`: codes.Code(99),
		`{"code":"Throttled"}`:             codes.Unknown,
		`{}`:                               codes.Unknown,
		`{"code":"OK"}`:                    codes.OK,
	} {
		var s status.Status
		require.NoError(t, json.Unmarshal([]byte(in), &s), in)
		require.Equal(t, status.New(want, ""), &s, in)
	}
}

func TestStatus_UnmarshalErrorOrNull_ChangesNothing(t *testing.T) {
	t.Parallel()
	for in, fails := range map[string]bool{
		`null`: false, `[]`: true, `"x"`: true, `{"code":-1}`: true, `{"number":-1}`: true,
		`{"code":"NotFound","message":7}`: true, `{"code":"NotFound","messageBytes":"%"}`: true, `{`: true,
	} {
		s := status.New(codes.Internal, "before")
		err := json.Unmarshal([]byte(in), s)
		require.Equal(t, fails, err != nil, "%s: %v", in, err)
		require.Equal(t, status.New(codes.Internal, "before"), s, in)
	}
}

func FuzzStatusJSON(f *testing.F) {
	f.Add(uint32(codes.NotFound), "gone", true, "404 [eu-1]", []byte(`{}`))
	f.Add(uint32(codes.OK), "", false, "", []byte(`{"code":"Throttled","number":99,"message":"x","cause":"y"}`))
	f.Add(uint32(1<<31), "\xff\x00\u2028<>&", true, "", []byte(`{"code":5,"messageBytes":"Yf8=","causeBytes":"Yf8="}`))
	f.Add(uint32(13), strings.Repeat("[\n\x00\"\\<é\xc3]", 8<<10), false, "", []byte(`[]`))
	f.Add(uint32(2), "[", true, "\xed\xa0\x80", []byte(`{"code":"NotFound","number":7,"cause":"c","causeBytes":"/w=="}`))
	f.Fuzz(func(t *testing.T, number uint32, message string, caused bool, cause string, foreign []byte) {
		in := status.New(codes.Code(number), message)
		if caused && number != 0 {
			in, _ = status.FromError(status.WrapError(codes.Code(number), message, errors.New(cause)))
		}
		checkRoundTrip(t, in)
		var decoded status.Status
		if json.Unmarshal(foreign, &decoded) == nil {
			checkRoundTrip(t, &decoded)
		}
	})
}

// checkRoundTrip asserts that code, message and the text of the cause are kept.
func checkRoundTrip(t *testing.T, in *status.Status) {
	t.Helper()
	data, err := json.Marshal(in)
	require.NoError(t, err)
	var out status.Status
	require.NoError(t, json.Unmarshal(data, &out), "%s", data)
	require.Equal(t, in.Code(), out.Code())
	require.Equal(t, in.Message(), out.Message())
	require.Equal(t, in.Error(), out.Error())
	require.Equal(t, in.Cause() == nil, out.Cause() == nil)
	if in.Cause() != nil {
		require.Equal(t, in.Cause().Error(), out.Cause().Error())
	}
}
