// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/nodeops"
)

func TestLabelsAndAnnotations(t *testing.T) {
	type entries = map[string]string
	for name, tc := range map[string]struct {
		have    entries
		do      func(entries) (entries, bool)
		want    entries
		changed bool
	}{
		"a label in no map":            {nil, func(m entries) (entries, bool) { return nodeops.SetLabel(m, "a", "1") }, entries{"a": "1"}, true},
		"a label with another value":   {entries{"a": "0"}, func(m entries) (entries, bool) { return nodeops.SetLabel(m, "a", "1") }, entries{"a": "1"}, true},
		"a label that is there":        {entries{"a": "1"}, func(m entries) (entries, bool) { return nodeops.SetLabel(m, "a", "1") }, entries{"a": "1"}, false},
		"an empty value is a value":    {entries{}, func(m entries) (entries, bool) { return nodeops.SetAnnotation(m, "a", "") }, entries{"a": ""}, true},
		"an empty key is none":         {nil, func(m entries) (entries, bool) { return nodeops.SetAnnotation(m, "", "1") }, nil, false},
		"an empty key among several":   {nil, func(m entries) (entries, bool) { return nodeops.SetLabels(m, entries{"": "1"}) }, nil, false},
		"several annotations":          {entries{"a": "1"}, func(m entries) (entries, bool) { return nodeops.SetAnnotations(m, entries{"a": "1", "b": "2"}) }, entries{"a": "1", "b": "2"}, true},
		"no labels at all":             {nil, func(m entries) (entries, bool) { return nodeops.SetLabels(m, nil) }, nil, false},
		"removing what is there":       {entries{"a": "1", "b": "2"}, func(m entries) (entries, bool) { return nodeops.RemoveLabels(m, "a", "zzz") }, entries{"b": "2"}, true},
		"removing what is not there":   {entries{"a": "1"}, func(m entries) (entries, bool) { return nodeops.RemoveAnnotations(m, "b") }, entries{"a": "1"}, false},
		"removing from nothing":        {nil, func(m entries) (entries, bool) { return nodeops.RemoveLabels(m, "a") }, nil, false},
		"removing the same key twice":  {entries{"a": "1"}, func(m entries) (entries, bool) { return nodeops.RemoveLabels(m, "a", "a") }, entries{}, true},
		"removing nothing in general":  {entries{"a": "1"}, func(m entries) (entries, bool) { return nodeops.RemoveLabels(m) }, entries{"a": "1"}, false},
		"an annotation of its own map": {entries{"a": "1"}, func(m entries) (entries, bool) { return nodeops.SetAnnotation(m, "b", "2") }, entries{"a": "1", "b": "2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.have)
			got, changed := tc.do(tc.have)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.changed, changed)
			require.Equal(t, before, tc.have)
			if got != nil {
				got["scribble"] = ""
				require.Equal(t, before, tc.have, "the output shares memory with the input")
			}
		})
	}
}

func TestLabelLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		have, set := randomEntries(rng), randomEntries(rng)
		got, changed := nodeops.SetLabels(have, set)
		require.Equal(t, changed, !maps.Equal(have, got))
		again, changed := nodeops.SetLabels(got, set)
		require.False(t, changed)
		require.True(t, maps.Equal(got, again))
		for key, value := range have {
			if _, ok := set[key]; !ok {
				require.Equal(t, value, got[key], "a foreign key survives")
			}
		}
	}
}

// randomEntries returns a small map over few keys and values, or nil.
func randomEntries(rng *rand.Rand) map[string]string {
	var out map[string]string
	for range rng.IntN(4) {
		if out == nil {
			out = map[string]string{}
		}
		out[pick(rng, "a", "b", "c", "d", "e")] = pick(rng, "", "1", "2")
	}
	return out
}
