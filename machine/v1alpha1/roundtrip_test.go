// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestObjectsOfTheReferenceSurviveDecodingAndEncoding(t *testing.T) {
	for _, o := range testObjects(t) {
		t.Run(o.name, func(t *testing.T) {
			obj := newObject(t, o.kind())
			require.NoError(t, json.Unmarshal(o.json, obj))
			data, err := json.Marshal(obj)
			require.NoError(t, err)

			want, got := withoutNothing(o.generic), withoutNothing(decodeGeneric(t, data))
			require.Empty(t, cmp.Diff(want, got), "(-before +after)")
		})
	}
}

// withoutNothing takes out of an object what says nothing: null and {}, and
// then what holds nothing else. encoding/json writes a struct without a value as
// {} and a time without one as null, whether or not they were there before.
// Inside of providerSpec, which is opaque, everything counts.
func withoutNothing(value map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range value {
		if key == "providerSpec" {
			out[key] = v
			continue
		}
		if v = something(v); v != nil {
			out[key] = v
		}
	}
	return out
}

func something(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if m := withoutNothing(v); len(m) > 0 {
			return m
		}
		return nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = something(v[i])
		}
		return out
	}
	return value
}

func TestProviderSpecKeepsEveryByteOfMeaning(t *testing.T) {
	const spec = `{"a":null,"b":{},"c":[],"d":1.50,"e":9007199254740993,"f":"\u00fc"}`
	var class v1alpha1.MachineClass
	require.NoError(t, json.Unmarshal([]byte(`{"providerSpec":`+spec+`}`), &class))
	require.Equal(t, spec, string(class.ProviderSpec.Raw))
	data, err := json.Marshal(&class)
	require.NoError(t, err)
	require.Equal(t, decodeGeneric(t, []byte(spec)), decodeGeneric(t, data)["providerSpec"])
}

func TestRandomObjectsRoundTripThroughTheCodecOfTheScheme(t *testing.T) {
	scheme := newScheme(t)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	encoder, decoder := codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), codecs.UniversalDeserializer()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(60) {
				obj := randomObject(t, kind, seed)
				data, err := runtime.Encode(encoder, obj)
				require.NoError(t, err)
				back, err := runtime.Decode(decoder, data)
				require.NoError(t, err)
				require.True(t, apiequality.Semantic.DeepEqual(obj, back), "seed %d: %s", seed, cmp.Diff(obj, back))
			}
		})
	}
}
