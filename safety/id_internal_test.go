// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/nodeops"
)

// TestIDKeys_AnyTwoIDs_SameKeyIfSameNormalized compares the keys with what nodeops says.
func TestIDKeys_AnyTwoIDs_SameKeyIfSameNormalized(t *testing.T) {
	t.Parallel()
	parts := []string{"aws", "azure", "AWS", "gce2", "2gce", "://", ":", "/", "//", "///", "a", "B", "b", "i-1", " ", "\t", "é", "\u00a0", "."}
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (id string) {
		if r.IntN(2) == 0 {
			id = parts[r.IntN(5)] + "://"
		}
		for range r.IntN(5) {
			id += parts[r.IntN(len(parts))]
		}
		return id
	}
	same := 0
	for range 300_000 {
		a, b := random(), random()
		if r.IntN(4) == 0 {
			b = nodeops.NormalizeProviderID(a)
		}
		for _, keys := range []idKeys{"", "aws", "azure"} {
			want := nodeops.NormalizeProviderID(a) == nodeops.NormalizeProviderID(b)
			require.Equal(t, want, keys.of(a) == keys.of(b), "%q %q with %q", a, b, keys)
			require.Equal(t, nodeops.NormalizeProviderID(a) == "", keys.of(a) == "", "%q", a)
			if want && a != b {
				same++
			}
		}
	}
	require.Greater(t, same, 10_000)
}
