// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

const canonical = "machine codes error: code = [NotFound] message = [gone]"

// cloudError is a foreign error type with a code.
type cloudError struct{ code codes.Code }

func (e cloudError) Error() string    { return "cloud said [NotFound] [no]" }
func (e cloudError) Code() codes.Code { return e.code }

func TestFromError_TypedStatus_IsReturned(t *testing.T) {
	t.Parallel()
	inner := status.WrapError(codes.ResourceExhausted, "quota", errors.New("sdk"))
	for name, err := range map[string]error{
		"wrapped":                           fmt.Errorf("a: %w", fmt.Errorf("b: %w", inner)),
		"with a bracket group behind it":    fmt.Errorf("%w [request 4711]", inner),
		"beside the text of another status": fmt.Errorf("%s: %w", canonical, inner),
		"inside a context error":            fmt.Errorf("%w: %w", context.Canceled, inner),
	} {
		s, ok := status.FromError(err)
		require.True(t, ok, name)
		require.Same(t, inner, s, name)
		require.Equal(t, codes.ResourceExhausted, codes.Of(err), name)
	}
}

func TestFromError_OtherErrors_BecomeStatus(t *testing.T) {
	t.Parallel()
	var nilStatus *status.Status
	okStatus := status.New(codes.OK, "fine")
	for name, tc := range map[string]struct {
		err  error
		code codes.Code
		ok   bool
	}{
		"an error of another type with a code":    {cloudError{codes.Aborted}, codes.Aborted, true},
		"... beside a status":                     {errors.Join(cloudError{codes.Aborted}, status.Error(codes.NotFound, "")), codes.Aborted, true},
		"a canceled context":                      {fmt.Errorf("a: %w", context.Canceled), codes.Canceled, true},
		"a context error in a canonical text":     {fmt.Errorf("machine codes error: code = [NotFound] message = [%w]", context.Canceled), codes.Canceled, true},
		"a nil status":                            {nilStatus, codes.Unknown, false},
		"a status of code OK":                     {okStatus, codes.Unknown, false},
		"an error whose As gives nothing":         {nothing{}, codes.Unknown, false},
		"a foreign error":                         {errors.New("boom"), codes.Unknown, false},
		"a foreign text with two bracket groups":  {errors.New("user input [NotFound] said [boom]"), codes.Unknown, false},
		"a foreign text that quotes a status":     {fmt.Errorf("cannot parse %q", canonical), codes.Unknown, false},
		"a status text, and then more":            {errors.New(canonical + ": giving up"), codes.Unknown, false},
		"a status text with a name of the future": {errors.New("machine codes error: code = [Throttled] message = [x]"), codes.Unknown, false},
		"a status text with the code OK":          {errors.New("machine codes error: code = [OK] message = [x]"), codes.Unknown, false},
		"a status text without a message":         {errors.New("machine codes error: code = [NotFound]"), codes.Unknown, false},
		"a status text that breaks off":           {errors.New("machine codes error: code = [NotFound] message = [x"), codes.Unknown, false},
		"only the second status text is placed right": {
			errors.New("echo machine codes error: code = [Internal] message = [x]: " + canonical), codes.Unknown, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ok := status.FromError(tc.err)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.code, s.Code())
			require.Equal(t, tc.err.Error(), s.Message())
			require.Equal(t, tc.err, s.Cause())
			require.Equal(t, codes.Of(tc.err), s.Code(), "Of and FromError disagree")
		})
	}
}

func TestFromError_StatusAsText_IsParsed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text    string
		code    codes.Code
		message string
	}{
		"bare":                           {canonical, codes.NotFound, "gone"},
		"behind a prefix with brackets":  {"zone [eu-1], [try 3]: " + canonical, codes.NotFound, "gone"},
		"with nested brackets":           {status.Error(codes.Internal, "a [b [c]] d").Error(), codes.Internal, "a [b [c]] d"},
		"with a code of the future":      {status.Error(codes.Code(99), "x").Error(), codes.Code(99), "x"},
		"with a bracket group behind it": {canonical + " [request 4711]", codes.NotFound, "gone] [request 4711"},
		"with another status behind it":  {canonical + "\n" + canonical, codes.NotFound, "gone]\n" + canonical[:len(canonical)-1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := errors.New(tc.text)
			s, ok := status.FromError(err)
			require.True(t, ok)
			require.Equal(t, tc.code, s.Code())
			require.Equal(t, tc.message, s.Message())
			require.Equal(t, err, s.Cause())
			require.Equal(t, codes.Unknown, codes.Of(err), "Of reads texts")
		})
	}
}

// nothing is an error whose As method returns true without a target.
type nothing struct{}

func (nothing) Error() string { return "nothing" }
func (nothing) As(any) bool   { return true }

func FuzzFromError(f *testing.F) {
	for _, text := range []string{"", "gone", "[", "]", "a [b] c [d]", canonical, "x: " + canonical, canonical + " [x]", "\xff\n"} {
		f.Add(uint32(codes.NotFound), text, "", "")
		f.Add(uint32(codes.OK), "msg", text, "x: ")
		f.Add(uint32(99), "msg", "cause", text)
	}
	f.Fuzz(func(t *testing.T, number uint32, message, cause, around string) {
		code := codes.Code(number)
		inner := status.WrapError(code, message, errors.New(cause))
		if code == codes.OK {
			code = codes.Unknown
		}
		var want *status.Status
		errors.As(inner, &want)
		for _, err := range []error{
			inner,
			fmt.Errorf("%s%w", around, inner),
			fmt.Errorf("%w%s", inner, around),
			fmt.Errorf("%s: %w: %s", around, inner, around),
			errors.Join(errors.New(around), inner),
			fmt.Errorf("%w: %w", errors.New(around), fmt.Errorf("%s%w", cause, inner)),
		} {
			s, ok := status.FromError(err)
			if !ok || s != want || s.Code() != code || s.Message() != message || codes.Of(err) != code {
				t.Fatalf("%q became %v %q, ok %v, Of %v", err, s.Code(), s.Message(), ok, codes.Of(err))
			}
		}
		bare, ok := status.FromError(errors.New(inner.Error()))
		if !ok || bare.Code() != code || bare.Message() != message {
			t.Fatalf("text %q became %v %q, ok %v", inner, bare.Code(), bare.Message(), ok)
		}
		foreign := errors.New(around)
		s, ok := status.FromError(foreign)
		if s.Code() == codes.OK || codes.Of(foreign) != codes.Unknown || (!ok && s.Message() != around) {
			t.Fatalf("foreign %q became %v %q, ok %v", around, s.Code(), s.Message(), ok)
		}
		if ok && !strings.HasSuffix(around, s.Error()) {
			t.Fatalf("%q does not end in %q", around, s)
		}
	})
}

func BenchmarkFromError(b *testing.B) {
	typed := status.Error(codes.NotFound, "no such instance")
	for _, bc := range []struct {
		name string
		err  error
	}{
		{"typed", typed},
		{"wrapped", fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", typed))},
		{"text", errors.New(typed.Error())},
		{"foreign20B", errors.New(strings.Repeat("x", 20))},
		{"foreign2kB", errors.New(strings.Repeat("x", 2000))},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = status.FromError(bc.err)
			}
		})
	}
}
