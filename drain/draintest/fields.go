// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// An object has three parts: metadata, status, and all other fields, which are the desired state. Both objects of a pair
// have the same Go type.

// takeStatus replaces the status of to by a copy of that of from.
func takeStatus(to, from runtime.Object) {
	eachPart(to, from.DeepCopyObject(), func(name string, dst, src reflect.Value) {
		if name == "Status" {
			dst.Set(src)
		}
	})
}

// takeDesired replaces the desired state of to by a copy of that of from.
func takeDesired(to, from runtime.Object) {
	eachPart(to, from.DeepCopyObject(), func(name string, dst, src reflect.Value) {
		if name != "Status" && name != "ObjectMeta" {
			dst.Set(src)
		}
	})
}

// clearStatus empties the status.
func clearStatus(obj runtime.Object) {
	eachPart(obj, obj, func(name string, dst, _ reflect.Value) {
		if name == "Status" {
			dst.SetZero()
		}
	})
}

// sameDesired compares the desired state, and the status of a custom kind without status subresource.
func (k *kind) sameDesired(a, b runtime.Object) bool {
	same := true
	eachPart(a, b, func(name string, x, y reflect.Value) {
		if name == "ObjectMeta" || name == "Status" && (!k.custom || k.status != statusInline) {
			return
		}
		same = same && equal(x.Interface(), y.Interface(), k.custom)
	})
	return same
}

// same compares two objects as the API server stores them. For built-in kinds empty and absent fields are equal, for custom
// kinds they are not.
func (k *kind) same(a, b runtime.Object) bool { return equal(a, b, k.custom) }

func equal(a, b any, exact bool) bool {
	if exact {
		return equality.Semantic.DeepEqualWithNilDifferentFromEmpty(a, b)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// eachPart calls do for each top-level field.
func eachPart(a, b runtime.Object, do func(name string, a, b reflect.Value)) {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		if name := x.Type().Field(i).Name; name != "TypeMeta" {
			do(name, x.Field(i), y.Field(i))
		}
	}
}
