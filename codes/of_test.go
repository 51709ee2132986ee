// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// cloudError is a foreign error type with a code.
type cloudError struct{ code codes.Code }

func (e cloudError) Error() string    { return "cloud said no" }
func (e cloudError) Code() codes.Code { return e.code }

// httpError has a method Code of another type; it is no Coder.
type httpError struct{}

func (httpError) Error() string { return "404" }
func (httpError) Code() int     { return 404 }

// disguised is an error whose As method returns another error.
type disguised struct{ as codes.Coder }

func (disguised) Error() string { return "disguised" }
func (d disguised) As(target any) bool {
	if c, ok := target.(*codes.Coder); ok {
		*c = d.as
		return true
	}
	return false
}

// likened is an error whose Is method matches another error.
type likened struct{ is, wraps error }

func (likened) Error() string          { return "likened" }
func (l likened) Is(target error) bool { return target == l.is }
func (l likened) Unwrap() error        { return l.wraps }

// uncomparable is an error that panics when compared.
type uncomparable []error

func (uncomparable) Error() string     { return "many" }
func (u uncomparable) Unwrap() []error { return u }

func TestOf_EachError_HasItsCode(t *testing.T) {
	t.Parallel()
	wrap := func(err error) error { return fmt.Errorf("machine m-1: %w", err) }
	for name, tc := range map[string]struct {
		err  error
		want codes.Code
	}{
		"nil is OK": {nil, codes.OK},
		"a Code method of another type does not count": {httpError{}, codes.Unknown},
		"a file deadline is no context error":          {os.ErrDeadlineExceeded, codes.Unknown},
		"an error that equals a canceled context":      {wrap(likened{is: context.Canceled}), codes.Canceled},
		"the outer of two context errors":              {likened{context.DeadlineExceeded, context.Canceled}, codes.DeadlineExceeded},
		"an error that turns into a typed one":         {wrap(disguised{cloudError{codes.Aborted}}), codes.Aborted},
		"an error that turns into a success":           {disguised{cloudError{codes.OK}}, codes.Unknown},
		"an error type that cannot be compared":        {uncomparable{nil, cloudError{codes.NotFound}}, codes.NotFound},
	} {
		require.Equal(t, tc.want, codes.Of(tc.err), name)
	}
}

// TestOf_AnyTree_AgreesWithErrorsAs compares Of with errors.As on random trees.
func TestOf_AnyTree_AgreesWithErrorsAs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		err := randomTree(rand.New(rand.NewPCG(seed, 1)), 5)
		require.Equal(t, obviousOf(err), codes.Of(err), "seed %d: %v", seed, err)
	}
}

func obviousOf(err error) codes.Code {
	var coder codes.Coder
	if errors.As(err, &coder) {
		if coder.Code() == codes.OK {
			return codes.Unknown
		}
		return coder.Code()
	}
	canceled, expired := errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded)
	switch {
	case canceled && expired:
		// Which one is first cannot be asked of errors.Is.
		return codes.Of(err)
	case canceled:
		return codes.Canceled
	case expired:
		return codes.DeadlineExceeded
	}
	return codes.Unknown
}

// randomTree returns an error of wrappers and joins with leaves of all kinds.
func randomTree(r *rand.Rand, depth int) error {
	if depth == 0 || r.IntN(4) == 0 {
		switch r.IntN(12) {
		case 0:
			return context.Canceled
		case 1:
			return context.DeadlineExceeded
		case 2:
			return cloudError{codes.Code(r.IntN(20))}
		case 3:
			return (*status.Status)(nil)
		default:
			return errors.New("leaf")
		}
	}
	switch r.IntN(5) {
	case 0:
		return errors.Join(randomTree(r, depth-1), randomTree(r, depth-1), randomTree(r, depth-1))
	case 1:
		return fmt.Errorf("%w: %w", randomTree(r, depth-1), randomTree(r, depth-1))
	case 2:
		if r.IntN(3) == 0 {
			return status.WrapError(codes.Code(r.IntN(20)), "x", randomTree(r, depth-1))
		}
	case 3:
		return codes.WithRetryAfter(randomTree(r, depth-1), time.Duration(r.IntN(3)))
	}
	return fmt.Errorf("node: %w", randomTree(r, depth-1))
}

func TestOf_TypedError_DoesNotAllocate(t *testing.T) {
	err := status.Error(codes.NotFound, "gone")
	wrapped := fmt.Errorf("a: %w", fmt.Errorf("b: %w", err))
	require.Zero(t, testing.AllocsPerRun(100, func() { sink = codes.Of(err) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { sink = codes.Of(wrapped) }))
}

// sink prevents the compiler from removing the measured call.
var sink codes.Code

func BenchmarkOf(b *testing.B) {
	err := fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", status.Error(codes.NotFound, "no such instance")))
	b.ReportAllocs()
	for b.Loop() {
		sink = codes.Of(err)
	}
}
