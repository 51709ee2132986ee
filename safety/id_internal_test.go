// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/nodeops"
)

// TestIDKeys_AnyTwoIDs_SameKeyIfSameNormalized compares keys with normalized provider IDs.
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
		na, nb := nodeops.NormalizeProviderID(a), nodeops.NormalizeProviderID(b)
		want := na == nb
		for _, keys := range []idKeys{"", "aws", "azure"} {
			if same := keys.of(a) == keys.of(b); want != same {
				t.Fatalf("%q %q with %q: the same key is %t, want %t", a, b, keys, same, want)
			}
			if empty := keys.of(a) == ""; empty != (na == "") {
				t.Fatalf("%q with %q: the empty key is %t", a, keys, empty)
			}
			if want && a != b {
				same++
			}
		}
	}
	require.Greater(t, same, 10_000)
}
