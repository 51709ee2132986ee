// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

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
