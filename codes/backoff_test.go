// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

func constant(x float64) func() float64 { return func() float64 { return x } }

func TestBackoff_FirstFailure_WaitsAsMCM(t *testing.T) {
	t.Parallel()
	for _, c := range numbered {
		failure := codes.FailureOf(status.Error(c.code, ""), 1)
		require.Equal(t, c.wait, codes.Backoff(codes.BackoffPolicy{}, failure, nil), c.name)
	}
	for _, later := range []codes.Failure{codes.FailureOf(status.Error(99, ""), 1), {Category: 200}, {}} {
		require.Equal(t, 3*time.Minute, codes.Backoff(codes.BackoffPolicy{}, later, nil))
	}
}

func TestBackoff_OwnPolicy_Waits(t *testing.T) {
	t.Parallel()
	const s = time.Second
	own := codes.BackoffPolicy{
		RetrySoon:     codes.Pace{Base: 10 * s, Factor: 3, Cap: 100 * s, Jitter: 0.5},
		RetryAfterCap: 200 * s,
	}
	for name, tc := range map[string]struct {
		attempts int
		after    time.Duration
		jitter   func() float64
		want     time.Duration
	}{
		"a factor":                             {3, 0, nil, 90 * s},
		"the cap ends the growth":              {4, 0, nil, 100 * s},
		"jitter takes its share":               {1, 0, constant(0.5), 7500 * time.Millisecond},
		"a source that gives no number":        {1, 0, constant(math.NaN()), 10 * s},
		"jitter makes a requested wait longer": {1, 40 * s, constant(1), 60 * s},
		"jitter within the limit of a request": {1, 190 * s, constant(1), 200 * s},
		"jitter outside of its range":          {1, 0, constant(7), 5 * s},
	} {
		f := codes.Failure{Category: codes.RetrySoon, Attempts: tc.attempts, RetryAfter: tc.after}
		require.Equal(t, tc.want, codes.Backoff(own, f, tc.jitter), name)
	}
}

func TestBackoff_Over1000Attempts_SameWait(t *testing.T) {
	t.Parallel()
	p := codes.BackoffPolicy{RetrySoon: codes.Pace{Base: time.Hour, Factor: 1.001, Cap: math.MaxInt64}}
	at := func(n int) time.Duration {
		return codes.Backoff(p, codes.Failure{Category: codes.RetrySoon, Attempts: n}, nil)
	}
	require.Less(t, at(999), at(1000))
	require.Equal(t, at(1000), at(1001))
	require.Equal(t, at(1000), at(math.MaxInt))
}

// TestBackoff_AnyPolicy_Laws checks the doc comment of Backoff with random policies and
// failures.
func TestBackoff_AnyPolicy_Laws(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := codes.BackoffPolicy{RetrySoon: randomPace(r), RetryLater: randomPace(r), RetryAfterCap: randomWait(r)}
		category := []codes.Category{codes.RetrySoon, codes.RetryLater, codes.Proceed}[r.IntN(3)]
		f := codes.Failure{Category: category, Attempts: randomAttempts(r), RetryAfter: randomWait(r)}
		if err := backoffLaws(p, f, r.Float64); err != nil {
			t.Fatalf("seed %d: %v\npolicy %+v\nfailure %+v", seed, err, p, f)
		}
	}
}

func randomPace(r *rand.Rand) codes.Pace {
	floats := []float64{0, -1, 1, 2, 1.5, 1 + 0x1p-52, 0.3, 1e300, r.Float64() * 4, math.NaN(), math.Inf(1), math.Inf(-1)}
	return codes.Pace{
		Base: randomWait(r), Factor: floats[r.IntN(len(floats))],
		Cap: randomWait(r), Jitter: floats[r.IntN(len(floats))],
	}
}

func randomWait(r *rand.Rand) time.Duration {
	waits := []time.Duration{0, -1, 1, 2, math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 1 << 53, 1<<53 + 1}
	if r.IntN(2) == 0 {
		return time.Duration(r.Int64N(int64(time.Hour)))
	}
	return waits[r.IntN(len(waits))]
}

func randomAttempts(r *rand.Rand) int {
	attempts := []int{math.MinInt, -1, 0, 1, 2, 999, 1000, 1001, math.MaxInt - 1, r.IntN(50)}
	return attempts[r.IntN(len(attempts))]
}

// backoffLaws returns the violated promise of Backoff.
func backoffLaws(p codes.BackoffPolicy, f codes.Failure, jitter func() float64) error {
	pace, limit := p.Pace(f.Category), p.RetryAfterCap
	if limit <= 0 {
		limit = time.Hour
	}
	exact, spread := codes.Backoff(p, f, nil), codes.Backoff(p, f, jitter)
	unasked := f
	unasked.RetryAfter = 0
	own, ownSpread := codes.Backoff(p, unasked, nil), codes.Backoff(p, unasked, jitter)
	next := unasked
	next.Attempts++
	asked := min(max(f.RetryAfter, 0), limit)
	// A float64 has 53 bits; of a share it may lose what lies below them.
	least := time.Duration((float64(own) * (1 - pace.Jitter)) * (1 - 0x1p-50))
	switch {
	case codes.Backoff(p, f, nil) != exact:
		return errors.New("not a function of its input")
	case f.Category == codes.Proceed:
		if exact != 0 || spread != 0 {
			return errors.New("a success waits")
		}
	case own <= 0 || ownSpread <= 0 || exact <= 0 || spread <= 0:
		return errors.New("a wait that is not positive")
	case own > pace.Cap || ownSpread > pace.Cap:
		return fmt.Errorf("own wait %s or %s above cap %s", own, ownSpread, pace.Cap)
	case ownSpread > own || ownSpread < least-1:
		return fmt.Errorf("with jitter %s, not in [%s, %s]", ownSpread, least, own)
	case exact != max(own, asked):
		return fmt.Errorf("%s is not the larger of own %s and asked %s", exact, own, asked)
	case spread < asked || spread > max(pace.Cap, limit):
		return fmt.Errorf("with jitter %s, not in [%s, %s]", spread, asked, max(pace.Cap, limit))
	case next.Attempts > f.Attempts && codes.Backoff(p, next, nil) < own:
		return fmt.Errorf("one more attempt waits less than %s", own)
	}
	return nil
}

func FuzzBackoff(f *testing.F) {
	f.Add(int64(5e9), 2.0, int64(180e9), 0.2, int64(0), uint8(codes.RetrySoon), 3, int64(0), 0.5)
	f.Add(int64(math.MaxInt64), math.Inf(1), int64(math.MaxInt64), 1.0, int64(-1), uint8(200), math.MaxInt, int64(math.MaxInt64), 1.0)
	f.Add(int64(-1), math.NaN(), int64(1), -0.5, int64(math.MaxInt64), uint8(codes.Proceed), math.MinInt, int64(-1), math.NaN())
	f.Fuzz(func(t *testing.T, base int64, factor float64, longest int64, jitter float64, limit int64,
		category uint8, attempts int, after int64, drawn float64,
	) {
		pace := codes.Pace{Base: time.Duration(base), Factor: factor, Cap: time.Duration(longest), Jitter: jitter}
		p := codes.BackoffPolicy{RetrySoon: pace, RetryLater: pace, WaitForCapacity: pace, RetryAfterCap: time.Duration(limit)}
		failure := codes.Failure{Category: codes.Category(category), Attempts: attempts, RetryAfter: time.Duration(after)}
		if err := backoffLaws(p, failure, constant(drawn)); err != nil {
			t.Fatalf("%v\npolicy %+v\nfailure %+v", err, p, failure)
		}
	})
}

func TestPace_ZeroFields_HaveDefaults(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	nan := math.NaN()
	for given, want := range map[codes.Pace]codes.Pace{
		{}:                    {Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2},
		{Base: 7 * m}:         {Base: 7 * m, Factor: 2, Cap: 7 * m, Jitter: 0.2},
		{Base: 7 * m, Cap: m}: {Base: m, Factor: 2, Cap: m, Jitter: 0.2},
		{Base: -1, Factor: -1, Cap: -1, Jitter: -1}: {Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2},
		{Factor: nan, Jitter: nan}:                  {Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2},
		{Factor: 0.5, Jitter: 1}:                    {Base: 5 * s, Factor: 1, Cap: 3 * m, Jitter: 0.9},
	} {
		require.Equal(t, want, codes.BackoffPolicy{RetrySoon: given}.Pace(codes.RetrySoon), given)
	}
}

// throttled is an error of a cloud with a requested wait.
type throttled struct{ after time.Duration }

func (throttled) Error() string               { return "slow down" }
func (e throttled) RetryAfter() time.Duration { return e.after }

func TestRetryAfterOf_EachError_ReturnsTheTime(t *testing.T) {
	t.Parallel()
	minute := codes.WithRetryAfter(throttled{time.Second}, time.Minute)
	for want, err := range map[time.Duration]error{
		time.Minute: fmt.Errorf("a: %w", minute),
		time.Second: throttled{time.Second},
		0:           throttled{-time.Second},
	} {
		require.Equal(t, want, codes.RetryAfterOf(err))
	}
	require.Equal(t, minute, codes.WithRetryAfter(minute, 0), "attaching nothing changes nothing")
	require.NoError(t, codes.WithRetryAfter(nil, time.Minute))
}
