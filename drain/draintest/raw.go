// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rawness remembers keepsRaw by type.
var rawness sync.Map

// keepsRaw says whether a type may keep a part of its JSON as it came. Those that read their JSON themselves count
// as such, except the ones that are known to keep a value.
func keepsRaw(t reflect.Type) bool {
	if known, ok := rawness.Load(t); ok {
		raw, _ := known.(bool)
		return raw
	}
	raw := findRaw(t, map[reflect.Type]bool{})
	rawness.Store(t, raw)
	return raw
}

var (
	readsItself = reflect.TypeFor[json.Unmarshaler]()
	// keepValues are types that read their JSON themselves, and keep no more than its value. Managed fields are not
	// kept at all.
	keepValues = map[reflect.Type]bool{
		reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true, reflect.TypeFor[metav1.Duration](): true,
		reflect.TypeFor[intstr.IntOrString](): true, reflect.TypeFor[resource.Quantity](): true, reflect.TypeFor[metav1.FieldsV1](): true,
	}
)

func findRaw(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || keepValues[t] {
		return false
	}
	seen[t] = true
	if reflect.PointerTo(t).Implements(readsItself) {
		return true
	}
	switch t.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return findRaw(t.Elem(), seen)
	case reflect.Map:
		return findRaw(t.Key(), seen) || findRaw(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if findRaw(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
