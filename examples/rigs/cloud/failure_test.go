// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// own is an error type of a driver.
type own struct {
	code  codes.Code
	cause error
}

func (o *own) Error() string    { return "own error" }
func (o *own) Code() codes.Code { return o.code }
func (o *own) Unwrap() error    { return o.cause }

// turns is an error that turns into another when it is asked.
type turns struct{ into *status.Status }

func (turns) Error() string { return "turns" }
func (t turns) As(target any) bool {
	switch p := target.(type) {
	case *codes.Coder:
		*p = t.into
	case **status.Status:
		*p = t.into
	default:
		return false
	}
	return true
}

// impatient is an error that asks for no time.
type impatient struct{ error }

func (i impatient) RetryAfter() time.Duration { return -1 }
func (i impatient) Unwrap() error             { return i.error }

// requireSame checks that two errors have the same text, code, wait and context error.
func requireSame(t *testing.T, want, got error) {
	t.Helper()
	require.Equal(t, want == nil, got == nil)
	if want == nil {
		return
	}
	require.Equal(t, want.Error(), got.Error())
	require.Equal(t, codes.Of(want), codes.Of(got))
	require.Equal(t, codes.RetryAfterOf(want), codes.RetryAfterOf(got))
	for _, sentinel := range []error{context.Canceled, context.DeadlineExceeded} {
		require.Equal(t, errors.Is(want, sentinel), errors.Is(got, sentinel), "%s", sentinel)
	}
	var a *status.Status
	aOK := errors.As(want, &a)
	var b *status.Status
	bOK := errors.As(got, &b)
	if aOK = aOK && a.Code() != codes.OK; aOK {
		require.True(t, bOK)
		requireSameStatus(t, a, b)
	}
	a, aOK = status.FromError(want)
	b, bOK = status.FromError(got)
	require.Equal(t, aOK, bOK)
	requireSameStatus(t, a, b)
}

func requireSameStatus(t *testing.T, want, got *status.Status) {
	t.Helper()
	require.Equal(t, want.Code(), got.Code())
	require.Equal(t, want.Message(), got.Message())
	require.Equal(t, want.Cause() == nil, got.Cause() == nil)
	if want.Cause() != nil {
		require.Equal(t, want.Cause().Error(), got.Cause().Error())
	}
}

func TestWire_Error_IsUnchanged(t *testing.T) {
	plain := errors.New("plain")
	for name, err := range map[string]error{
		"none":                     nil,
		"plain":                    plain,
		"empty":                    errors.New(""),
		"status":                   status.Error(codes.NotFound, "no such VM"),
		"status without a message": status.Error(codes.OutOfRange, ""),
		"status not in UTF-8":      status.WrapError(codes.Internal, "\xff\x00", errors.New("\xfe")),
		"code of the future":       status.Error(codes.Code(99), "?"),
		"cause":                    status.WrapError(codes.Aborted, "lost a race", plain),
		"status in a status":       status.WrapError(codes.Aborted, "outer", status.Error(codes.NotFound, "inner")),
		"wrapped":                  fmt.Errorf("zone a: %w", status.Error(codes.ResourceExhausted, "no")),
		"text of a status":         errors.New(status.Error(codes.NotFound, "only a text").Error()),
		"text in brackets":         status.Error(codes.Internal, "] message = [machine codes error: code = [NotFound] message = [x]"),
		"joined":                   errors.Join(plain, status.Error(codes.NotFound, "x"), context.Canceled),
		"joined contexts":          errors.Join(context.DeadlineExceeded, context.Canceled),
		"canceled":                 context.Canceled,
		"deadline":                 context.DeadlineExceeded,
		"wrapped deadline":         fmt.Errorf("asking: %w", context.DeadlineExceeded),
		"deadline of a status":     status.WrapError(codes.Unavailable, "zone a", context.DeadlineExceeded),
		"timeout of package net":   &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}},
		"later":                    codes.WithRetryAfter(status.Error(codes.ResourceExhausted, "slow"), 1500*time.Millisecond),
		"later plain":              codes.WithRetryAfter(plain, 1),
		"later inside":             status.WrapError(codes.Unavailable, "zone a", codes.WithRetryAfter(plain, time.Hour)),
		"not later":                impatient{codes.WithRetryAfter(plain, time.Hour)},
		"own":                      &own{code: codes.PermissionDenied},
		"own before a status":      &own{code: codes.PermissionDenied, cause: status.Error(codes.NotFound, "inside")},
		"own OK":                   &own{code: codes.OK},
		"nil status":               (*status.Status)(nil),
		"status of OK":             status.New(codes.OK, "well"),
		"turns":                    fmt.Errorf("so: %w", turns{status.New(codes.NotFound, "turned")}),
	} {
		t.Run(name, func(t *testing.T) {
			_, got := dial(t, failing(err)).GetMachineStatus(t.Context(), nil)
			requireSame(t, err, got)
		})
	}
}

func TestWire_StatusAndContextError_KeepTheirType(t *testing.T) {
	_, err := dial(t, failing(status.WrapError(codes.NotFound, "x", context.Canceled))).GetMachineStatus(t.Context(), nil)
	s, ok := err.(*status.Status) //nolint:errorlint // the error itself
	require.True(t, ok)
	require.Same(t, context.Canceled, s.Cause())
}

func TestWire_ErrorTree_KeepsTheCode(t *testing.T) {
	many := make([]error, 1000)
	for i := range many {
		many[i] = fmt.Errorf("zone %d", i)
	}
	many[999] = codes.WithRetryAfter(status.Error(codes.ResourceExhausted, "the last"), time.Minute)
	deep := context.DeadlineExceeded
	for range 1000 {
		deep = fmt.Errorf("x%w", deep)
	}
	for _, err := range []error{errors.Join(many...), deep} {
		_, got := dial(t, failing(err)).GetMachineStatus(t.Context(), nil)
		require.Equal(t, codes.Of(err), codes.Of(got))
		require.Equal(t, codes.RetryAfterOf(err), codes.RetryAfterOf(got))
		require.Equal(t, err.Error(), got.Error())
	}
}

// randomError returns any error of at most so many levels.
func randomError(r *rand.Rand, levels int) error {
	word := func() string {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = "ab :[]{}\"\\<&\n\x00\xff\xc3\xa9"[r.IntN(16)]
		}
		return string(b)
	}
	code := codes.Code(1 + r.IntN(20))
	if levels == 0 || r.IntN(4) == 0 {
		leaves := []error{
			status.Error(code, word()), errors.New(word()), context.Canceled, context.DeadlineExceeded,
			&own{code: code}, &own{}, turns{status.New(code, word())}, (*status.Status)(nil),
		}
		return leaves[r.IntN(len(leaves))]
	}
	inner := randomError(r, levels-1)
	switch r.IntN(6) {
	case 0:
		return status.WrapError(code, word(), inner)
	case 1:
		return fmt.Errorf("%s: %w", word(), inner)
	case 2:
		return errors.Join(inner, randomError(r, levels-1))
	case 3:
		return codes.WithRetryAfter(inner, time.Duration(1+r.Int64N(1<<40)))
	case 4:
		return &own{code: code, cause: inner}
	default:
		return impatient{inner}
	}
}

func TestWire_AnyError_IsUnchanged(t *testing.T) {
	const rounds = 3000
	var sent error
	client := dial(t, says{create: func(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
		return nil, sent
	}})
	for seed := range uint64(rounds) {
		sent = randomError(rand.New(rand.NewPCG(seed, 1)), 5)
		_, got := client.CreateMachine(t.Context(), nil)
		if t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { requireSame(t, sent, got) }); t.Failed() {
			t.Fatalf("seed %d: sent %q", seed, sent)
		}
	}
}
