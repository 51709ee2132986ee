// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// An object has three parts: metadata, status, and the desired state, which is all the rest. Both objects of a pair
// are of one kind and thus of one Go type.

// takeStatus replaces the status of to by a copy of the one of from.
func takeStatus(to, from runtime.Object) {
	eachPart(to, from.DeepCopyObject(), func(name string, dst, src part) {
		if name == "status" {
			dst.set(src)
		}
	})
}

// takeDesired replaces everything but metadata and status of to by a copy of what from has.
func takeDesired(to, from runtime.Object) {
	eachPart(to, from.DeepCopyObject(), func(name string, dst, src part) {
		if name != "status" && name != "metadata" {
			dst.set(src)
		}
	})
}

// clearStatus empties the status.
func clearStatus(obj runtime.Object) {
	eachPart(obj, obj, func(name string, dst, _ part) {
		if name == "status" {
			dst.clear()
		}
	})
}

// sameDesired compares everything but the metadata, and the status only if it is an ordinary field of a custom kind.
func (k *kind) sameDesired(a, b runtime.Object) bool {
	same := true
	eachPart(a, b, func(name string, x, y part) {
		if name == "metadata" || name == "status" && (!k.custom || k.status != StatusInline) {
			return
		}
		same = same && x.equal(y, k.custom)
	})
	return same
}

// same compares two objects the way the server stores them: for built-in kinds, empty and absent are one; of custom
// kinds it keeps what it was sent.
func (k *kind) same(a, b runtime.Object) bool { return equal(a, b, k.custom) }

func equal(a, b any, exact bool) bool {
	if exact {
		return equality.Semantic.DeepEqualWithNilDifferentFromEmpty(a, b)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// part is one top-level field of an object, typed or unstructured.
type part struct {
	field  reflect.Value
	object map[string]any
	key    string
}

func (p part) set(from part) {
	if p.object == nil {
		p.field.Set(from.field)
		return
	}
	if value, has := from.object[p.key]; has {
		p.object[p.key] = value
	} else {
		delete(p.object, p.key)
	}
}

func (p part) clear() {
	if p.object == nil {
		p.field.SetZero()
		return
	}
	delete(p.object, p.key)
}

func (p part) equal(q part, exact bool) bool {
	if p.object == nil {
		return equal(p.field.Interface(), q.field.Interface(), exact)
	}
	return equal(p.object[p.key], q.object[p.key], exact)
}

// eachPart calls do for each top-level field.
func eachPart(a, b runtime.Object, do func(name string, a, b part)) {
	if x, ok := a.(*unstructured.Unstructured); ok {
		y, ok := b.(*unstructured.Unstructured)
		if !ok {
			return
		}
		keys := map[string]bool{}
		for key := range x.Object {
			keys[key] = true
		}
		for key := range y.Object {
			keys[key] = true
		}
		for key := range keys {
			if key != "apiVersion" && key != "kind" {
				do(key, part{object: x.Object, key: key}, part{object: y.Object, key: key})
			}
		}
		return
	}
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		name := x.Type().Field(i).Name
		switch name {
		case "TypeMeta":
			continue
		case "ObjectMeta":
			name = "metadata"
		case "Status":
			name = "status"
		}
		do(name, part{field: x.Field(i)}, part{field: y.Field(i)})
	}
}
