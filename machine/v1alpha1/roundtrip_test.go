// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestJSON_ObjectsOfMCM_AreAcceptedAndKept asserts that the schemas accept manifests of MCM, and that
// a strict decoder refuses every field that the types would lose. The manifests are the output of
// kubectl, and objects with every field that MCM writes.
func TestJSON_ObjectsOfMCM_AreAcceptedAndKept(t *testing.T) {
	codecs := serializer.NewCodecFactory(newScheme(t), serializer.EnableStrict)
	paths, err := filepath.Glob("testdata/objects/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data, err = yaml.ToJSON(data)
		require.NoError(t, err, path)
		generic := decodeGeneric(t, data)
		kind := generic["kind"].(string)
		require.Empty(t, schemaOf(t, kind).check("", generic), path)

		obj, err := runtime.Decode(codecs.UniversalDeserializer(), data)
		require.NoError(t, err, path)
		data, err = json.Marshal(obj)
		require.NoError(t, err, path)
		back := newObject(t, kind)
		require.NoError(t, json.Unmarshal(data, back), path)
		require.Empty(t, cmp.Diff(obj, back), path)
	}
}

func TestJSON_ProviderSpec_IsKept(t *testing.T) {
	const spec = `{"a":null,"b":{},"c":[],"d":1.50,"e":9007199254740993,"f":"\u00fc"}`
	var class v1alpha1.MachineClass
	require.NoError(t, json.Unmarshal([]byte(`{"providerSpec":`+spec+`}`), &class))
	require.Equal(t, spec, string(class.ProviderSpec.Raw))
	data, err := json.Marshal(&class)
	require.NoError(t, err)
	require.Equal(t, decodeGeneric(t, []byte(spec)), decodeGeneric(t, data)["providerSpec"])
}

func TestJSON_RandomObjects_SurviveARoundTrip(t *testing.T) {
	codecs := serializer.NewCodecFactory(newScheme(t), serializer.EnableStrict)
	for _, kind := range kinds {
		for seed := range uint64(60) {
			obj := randomObject(t, kind, seed)
			data, err := runtime.Encode(codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), obj)
			require.NoError(t, err)
			back, err := runtime.Decode(codecs.UniversalDeserializer(), data)
			require.NoError(t, err)
			require.True(t, apiequality.Semantic.DeepEqual(obj, back), "seed %d: %s", seed, cmp.Diff(obj, back))
		}
	}
}

// TestDeepCopy_EachType_SharesNoMemory decodes another object into the memory of a copy.
func TestDeepCopy_EachType_SharesNoMemory(t *testing.T) {
	for _, kind := range kinds {
		for seed := range uint64(50) {
			obj := randomObject(t, kind, seed)
			clone := obj.DeepCopyObject()
			require.Empty(t, cmp.Diff(obj, clone))
			data, err := json.Marshal(randomObject(t, kind, 100+seed))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, clone))
			require.Empty(t, cmp.Diff(randomObject(t, kind, seed), obj), "seed %d", seed)
		}
	}
}

func TestAddToScheme_RegistersKindsListsAndOptions(t *testing.T) {
	scheme := newScheme(t)
	for _, kind := range kinds {
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind)), kind)
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind+"List")), kind)
	}
	require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind("ListOptions")))
}
