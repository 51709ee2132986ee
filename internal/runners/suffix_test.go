// SPDX-License-Identifier: Apache-2.0

package runners_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/internal/runners"
)

func TestSuffix_AnyRandom_IsValid(t *testing.T) {
	for _, r := range []float64{0, 0.5, 0.999, 1, -1, 1e300, math.NaN(), math.Inf(1)} {
		suffix := runners.Suffix(func() float64 { return r })
		require.Len(t, suffix, 5)
		require.Empty(t, validation.IsDNS1123Label(suffix))
	}
	require.Equal(t, runners.Suffix(func() float64 { return 0 }), runners.Suffix(nil))
	seen, random := map[string]bool{}, rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		seen[runners.Suffix(random.Float64)] = true
	}
	require.Greater(t, len(seen), 900)
}
