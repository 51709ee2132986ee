// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

func TestTheZeroPolicyIsTheDocumentedDefault(t *testing.T) {
	t.Parallel()
	var zero codes.BackoffPolicy
	later := codes.Pace{Base: 3 * time.Minute, Factor: 2, Cap: 10 * time.Minute, Jitter: 0.2}
	for _, c := range codes.Categories() {
		want := later
		switch c {
		case codes.Proceed:
			want = codes.Pace{}
		case codes.RetrySoon:
			want = codes.Pace{Base: 5 * time.Second, Factor: 2, Cap: 3 * time.Minute, Jitter: 0.2}
		case codes.WaitForCapacity:
			want = codes.Pace{Base: 10 * time.Minute, Factor: 1, Cap: 10 * time.Minute, Jitter: 0.2}
		}
		require.Equal(t, want, zero.Pace(c), c.String())
	}
	require.NoError(t, zero.Validate())
}

func TestEveryFieldOfThePolicyIsThePaceOfTheCategoryOfItsName(t *testing.T) {
	t.Parallel()
	for _, c := range codes.Categories() {
		var p codes.BackoffPolicy
		field := reflect.ValueOf(&p).Elem().FieldByName(c.String())
		require.Equal(t, c != codes.Proceed, field.IsValid(), c.String())
		if c == codes.Proceed {
			continue
		}
		given := codes.Pace{Base: 1, Factor: 3, Cap: 9, Jitter: 0.5}
		field.Set(reflect.ValueOf(given))
		for _, other := range codes.Categories() {
			require.Equal(t, other == c, p.Pace(other) == given, "%s set, %s asked", c, other)
		}
	}
}

func TestPaceFillsWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for name, tc := range map[string]struct{ given, want codes.Pace }{
		"nothing":                       {codes.Pace{}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"only a base":                   {codes.Pace{Base: 7 * s}, codes.Pace{Base: 7 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"only a base above the cap":     {codes.Pace{Base: 7 * m}, codes.Pace{Base: 7 * m, Factor: 2, Cap: 7 * m, Jitter: 0.2}},
		"only a cap below the base":     {codes.Pace{Cap: s}, codes.Pace{Base: s, Factor: 2, Cap: s, Jitter: 0.2}},
		"a cap below the base given":    {codes.Pace{Base: m, Cap: s}, codes.Pace{Base: s, Factor: 2, Cap: s, Jitter: 0.2}},
		"negative values":               {codes.Pace{Base: -1, Factor: -1, Cap: -1, Jitter: -1}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"no numbers":                    {codes.Pace{Factor: math.NaN(), Jitter: math.NaN()}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"a factor that would shrink":    {codes.Pace{Factor: 0.5}, codes.Pace{Base: 5 * s, Factor: 1, Cap: 3 * m, Jitter: 0.2}},
		"jitter that would eat it all":  {codes.Pace{Jitter: 1}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.9}},
		"all given, and within bounds":  {codes.Pace{Base: 1, Factor: 1, Cap: 2, Jitter: 0.1}, codes.Pace{Base: 1, Factor: 1, Cap: 2, Jitter: 0.1}},
		"only a factor, for the growth": {codes.Pace{Factor: 4}, codes.Pace{Base: 5 * s, Factor: 4, Cap: 3 * m, Jitter: 0.2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, codes.BackoffPolicy{RetrySoon: tc.given}.Pace(codes.RetrySoon))
		})
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	err := codes.BackoffPolicy{
		RetrySoon:       codes.Pace{Base: -1, Cap: -2, Factor: 0.5, Jitter: 1},
		RetryLater:      codes.Pace{Factor: math.NaN(), Jitter: math.NaN()},
		WaitForCapacity: codes.Pace{Base: time.Hour, Cap: time.Minute, Factor: 1, Jitter: 0.9},
		RetryAfterCap:   -1,
	}.Validate()
	require.EqualError(t, err, `backoff policy: RetryLater: factor NaN is below 1
backoff policy: RetryLater: jitter NaN is not between 0 and 0.9
backoff policy: RetrySoon: base -1ns is negative
backoff policy: RetrySoon: cap -2ns is negative
backoff policy: RetrySoon: factor 0.5 is below 1
backoff policy: RetrySoon: jitter 1 is not between 0 and 0.9
backoff policy: WaitForCapacity: base 1h0m0s is above cap 1m0s
backoff policy: retryAfterCap -1ns is negative`)
}

func TestAPolicySurvivesJSONAndTheZeroOneIsEmpty(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(codes.BackoffPolicy{})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(data))
	in := codes.BackoffPolicy{Adopt: codes.Pace{Base: time.Second, Factor: 2}, RetryAfterCap: time.Minute}
	data, err = json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"adopt":{"base":1000000000,"factor":2},"retryAfterCap":60000000000}`, string(data))
	var out codes.BackoffPolicy
	require.NoError(t, json.Unmarshal(data, &out))
	require.Equal(t, in, out)
}
