// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// testObject is one manifest of testdata/objects: the output of kubectl
// for objects of MCM, and objects with every field that MCM writes.
type testObject struct {
	name    string
	json    []byte
	generic map[string]any
}

func testObjects(t testing.TB) []testObject {
	t.Helper()
	paths, err := filepath.Glob("testdata/objects/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var objects []testObject
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		o := testObject{name: filepath.Base(path)}
		o.json, err = yaml.ToJSON(data)
		require.NoError(t, err, path)
		o.generic = decodeGeneric(t, o.json)
		objects = append(objects, o)
	}
	return objects
}

func (o testObject) kind() string { return o.generic["kind"].(string) }

// newObject returns an empty object of a kind, by way of the scheme.
func newObject(t testing.TB, kind string) runtime.Object {
	t.Helper()
	obj, err := newScheme(t).New(v1alpha1.SchemeGroupVersion.WithKind(kind))
	require.NoError(t, err)
	return obj
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

func decodeGeneric(t testing.TB, data []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	require.NoError(t, d.Decode(&m))
	return m
}
