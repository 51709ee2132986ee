// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
)

func TestPace_ZeroFields_HaveDefaults(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for name, tc := range map[string]struct{ given, want codes.Pace }{
		"nothing":                      {codes.Pace{}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"only a base above the cap":    {codes.Pace{Base: 7 * m}, codes.Pace{Base: 7 * m, Factor: 2, Cap: 7 * m, Jitter: 0.2}},
		"negative values":              {codes.Pace{Base: -1, Factor: -1, Cap: -1, Jitter: -1}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"no numbers":                   {codes.Pace{Factor: math.NaN(), Jitter: math.NaN()}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.2}},
		"a factor that would shrink":   {codes.Pace{Factor: 0.5}, codes.Pace{Base: 5 * s, Factor: 1, Cap: 3 * m, Jitter: 0.2}},
		"jitter that would eat it all": {codes.Pace{Jitter: 1}, codes.Pace{Base: 5 * s, Factor: 2, Cap: 3 * m, Jitter: 0.9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, codes.BackoffPolicy{RetrySoon: tc.given}.Pace(codes.RetrySoon))
		})
	}
}
