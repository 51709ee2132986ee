// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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

var kinds = []string{"Machine", "MachineClass", "MachineDeployment", "MachineSet"}

// randomObject returns an object of a kind in which about two thirds of the
// optional fields are set; the same one for the same seed.
func randomObject(t testing.TB, kind string, seed uint64) runtime.Object {
	t.Helper()
	obj := newObject(t, kind)
	f := filler{rand.New(rand.NewPCG(seed, 0))}
	f.fill(reflect.ValueOf(obj).Elem())
	obj.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	return obj
}

// filler fills values with data which JSON can carry.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value) {
	if special := f.special(v.Type()); special.IsValid() {
		v.Set(special)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
			if v.Elem().Kind() == reflect.Slice && v.Elem().IsNil() {
				v.SetZero() // a pointer to no list is written as null
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if n := f.IntN(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				item := v.Index(i)
				if item.Kind() == reflect.Pointer { // JSON has no use for a null in a list
					item.Set(reflect.New(item.Type().Elem()))
					item = item.Elem()
				}
				f.fill(item)
			}
		}
	case reflect.Map:
		if n := f.IntN(3); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				f.fill(key)
				f.fill(value)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", f.IntN(1000)))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Int32N(1000)))
	default:
		panic("no random value for " + v.Type().String())
	}
}

// special makes values of the types that cannot be filled field by field. The
// zero Value means that the type is not special.
func (f filler) special(t reflect.Type) reflect.Value {
	var value any
	switch t {
	case reflect.TypeFor[metav1.Time]():
		value = metav1.Unix(1_700_000_000+int64(f.IntN(1e6)), 0)
	case reflect.TypeFor[metav1.Duration]():
		value = metav1.Duration{Duration: time.Duration(f.IntN(1e6)) * time.Second}
	case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[[]metav1.ManagedFieldsEntry]():
		value = reflect.Zero(t).Interface()
	case reflect.TypeFor[resource.Quantity]():
		value = resource.MustParse(fmt.Sprintf("%dGi", f.IntN(100)))
	case reflect.TypeFor[intstr.IntOrString]():
		value = intstr.FromInt32(f.Int32N(10))
		if f.IntN(2) == 0 {
			value = intstr.FromString(fmt.Sprintf("%d%%", f.IntN(101)))
		}
	case reflect.TypeFor[runtime.RawExtension]():
		value = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"size":%d}`, f.IntN(100))}
	default:
		return reflect.Value{}
	}
	return reflect.ValueOf(value)
}
