// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestJSON_ObjectsOfMCM_SurviveARoundTrip asserts that a strict decoder refuses every
// field that the types would lose.
func TestJSON_ObjectsOfMCM_SurviveARoundTrip(t *testing.T) {
	codecs := serializer.NewCodecFactory(newScheme(t), serializer.EnableStrict)
	for _, o := range testObjects(t) {
		obj, err := runtime.Decode(codecs.UniversalDeserializer(), o.json)
		require.NoError(t, err, o.name)
		data, err := json.Marshal(obj)
		require.NoError(t, err, o.name)
		back := newObject(t, o.kind())
		require.NoError(t, json.Unmarshal(data, back), o.name)
		require.Empty(t, cmp.Diff(obj, back), o.name)
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

func TestDeepCopy_EachType_SharesNoMemory(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(50) {
				obj := randomObject(t, kind, seed)
				clone := obj.DeepCopyObject()
				require.Empty(t, cmp.Diff(obj, clone))
				require.Empty(t, shared(kind, reflect.ValueOf(obj), reflect.ValueOf(clone)), "seed %d", seed)
			}
		})
	}
}

// shared returns the paths at which two equal values point to the same memory.
func shared(path string, a, b reflect.Value) []string {
	var found []string
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || a.Type().String() == "*time.Location" {
			return nil
		}
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
		return shared(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			found = append(found, shared(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
		}
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for i := range a.Len() {
			found = append(found, shared(path+"[]", a.Index(i), b.Index(i))...)
		}
	case reflect.Map:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return []string{path}
		}
	}
	return found
}

func TestAddToScheme_RegistersKindsListsAndOptions(t *testing.T) {
	scheme := newScheme(t)
	for _, kind := range kinds {
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind)), kind)
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind+"List")), kind)
	}
	require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind("ListOptions")))
}
