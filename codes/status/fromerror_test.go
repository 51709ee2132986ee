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
	s, ok := status.FromError(fmt.Errorf("%w: %s: %w [request 4711]", context.Canceled, canonical, inner))
	require.True(t, ok)
	require.Same(t, inner, s)
}

func TestFromError_OtherErrors_BecomeStatus(t *testing.T) {
	t.Parallel()
	const opening = "machine codes error: code = "
	canceled := fmt.Errorf(opening+"[NotFound] message = [%w]", context.Canceled)
	beside := errors.Join(cloudError{codes.Aborted}, status.Error(codes.NotFound, ""))
	for name, tc := range map[string]struct {
		err  error
		code codes.Code
		ok   bool
	}{
		"an error of another type with a code":    {cloudError{codes.Aborted}, codes.Aborted, true},
		"... beside a status":                     {beside, codes.Aborted, true},
		"a context error in a status text":        {canceled, codes.Canceled, true},
		"a nil status":                            {(*status.Status)(nil), codes.Unknown, false},
		"a status of code OK":                     {status.New(codes.OK, "fine"), codes.Unknown, false},
		"an error whose As gives nothing":         {nothing{}, codes.Unknown, false},
		"a foreign text that quotes a status":     {fmt.Errorf("cannot parse %s", canonical), codes.Unknown, false},
		"a status text, and then more":            {errors.New(canonical + ": giving up"), codes.Unknown, false},
		"a status text with a name of the future": {errors.New(opening + "[Throttled] message = [x]"), codes.Unknown, false},
		"a status text with the code OK":          {errors.New(opening + "[OK] message = [x]"), codes.Unknown, false},
		"a status text without a message":         {errors.New(opening + "[NotFound]"), codes.Unknown, false},
		"only the second status text is in place": {errors.New("echo " + canonical + ": " + canonical), codes.Unknown, false},
	} {
		s, ok := status.FromError(tc.err)
		require.Equal(t, tc.ok, ok, name)
		require.Equal(t, tc.code, s.Code(), name)
		require.Equal(t, tc.err.Error(), s.Message(), name)
		require.Equal(t, tc.err, s.Cause(), name)
		require.Equal(t, codes.Of(tc.err), s.Code(), "Of and FromError disagree: %s", name)
	}
}

func TestFromError_StatusAsText_IsParsed(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]string{
		"zone [eu-1], [try 3]: " + canonical: "gone",
		canonical + " [request 4711]":        "gone] [request 4711",
		canonical + "\n" + canonical:         "gone]\n" + strings.TrimSuffix(canonical, "]"),
	} {
		err := errors.New(text)
		s, ok := status.FromError(err)
		require.True(t, ok, text)
		require.Equal(t, codes.NotFound, s.Code(), text)
		require.Equal(t, message, s.Message())
		require.Equal(t, err, s.Cause())
		require.Equal(t, codes.Unknown, codes.Of(err), "Of reads texts")
	}
}

// nothing is an error whose As method returns true without a target.
type nothing struct{}

func (nothing) Error() string { return "nothing" }
func (nothing) As(any) bool   { return true }

func FuzzFromError(f *testing.F) {
	texts := []string{"", "gone", "[", "]", "a [b] c [d]", canonical, "x: " + canonical, canonical + " [x]", "\xff\n"}
	for _, text := range texts {
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
	text := errors.New("reconcile: " + canonical)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = status.FromError(text)
	}
}
