// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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
	notFound := status.Error(codes.NotFound, "gone")
	var nilStatus *status.Status
	wrap := func(err error) error { return fmt.Errorf("machine m-1: %w", err) }

	for name, tc := range map[string]struct {
		err  error
		want codes.Code
	}{
		"nil is OK":                  {nil, codes.OK},
		"a foreign error is unknown": {errors.New("boom"), codes.Unknown},
		"a typed error":              {notFound, codes.NotFound},
		"a foreign typed error":      {cloudError{codes.Aborted}, codes.Aborted},
		"a Code method of another type does not count":     {httpError{}, codes.Unknown},
		"a canceled context":                               {context.Canceled, codes.Canceled},
		"an expired context":                               {context.DeadlineExceeded, codes.DeadlineExceeded},
		"a verdict wins over the context error it wraps":   {status.WrapError(codes.Internal, "x", context.Canceled), codes.Internal},
		"a file deadline is no context error":              {os.ErrDeadlineExceeded, codes.Unknown},
		"a net timeout counts as an expired context":       {dialTimeout(t), codes.DeadlineExceeded},
		"an error that equals a canceled context":          {wrap(likened{is: context.Canceled}), codes.Canceled},
		"the outer of two context errors":                  {likened{context.DeadlineExceeded, context.Canceled}, codes.DeadlineExceeded},
		"the text of a status does not count":              {errors.New(notFound.Error()), codes.Unknown},
		"a nil status in an error is not a success":        {nilStatus, codes.Unknown},
		"a status of code OK in an error is not a success": {status.New(codes.OK, "fine"), codes.Unknown},
		"an error that turns into a typed one":             {wrap(disguised{cloudError{codes.Aborted}}), codes.Aborted},
		"an error that turns into a success":               {disguised{cloudError{codes.OK}}, codes.Unknown},
		"an error type that cannot be compared":            {uncomparable{nil, notFound}, codes.NotFound},
	} {
		require.Equal(t, tc.want, codes.Of(tc.err), name)
	}
}

// dialTimeout returns the error of package net for a deadline that has passed.
func dialTimeout(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:9")
	require.Error(t, err)
	return err
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

// benchErrors are the measured errors.
func benchErrors() (typed, wrapped, foreign error) {
	typed = status.Error(codes.NotFound, "no such instance")
	wrapped = fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", typed))
	foreign = fmt.Errorf("reconcile: %w", fmt.Errorf("machine m-1: %w", errors.New("boom")))
	return typed, wrapped, foreign
}

func BenchmarkOf(b *testing.B) {
	typed, wrapped, foreign := benchErrors()
	for _, bc := range []struct {
		name string
		err  error
	}{{"nil", nil}, {"typed", typed}, {"wrapped", wrapped}, {"foreign", foreign}} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink = codes.Of(bc.err)
			}
		})
	}
}

func BenchmarkBackoff(b *testing.B) {
	failure := codes.Failure{Category: codes.RetrySoon, Attempts: 5}
	var wait time.Duration
	b.ReportAllocs()
	for b.Loop() {
		wait = codes.Backoff(codes.BackoffPolicy{}, failure, nil)
	}
	_ = wait
}
