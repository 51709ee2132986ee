// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
)

// Object is a pointer to a typed object.
type Object interface {
	comparable
	metav1.Object
}

// Memory keeps a value for each object between passes. The zero value is empty. It is safe for
// concurrent use.
type Memory[V any] struct {
	mu sync.Mutex
	of map[types.NamespacedName]remembered[V]
}

// remembered is the value of the object with a UID.
type remembered[V any] struct {
	uid   types.UID
	value V
}

// Get returns the value of an object. For another object of its name, and for an unknown one, that is
// the zero value.
func (m *Memory[V]) Get(o metav1.Object) V {
	return m.Change(o, nil)
}

// Change replaces the value of an object by the result of f and returns it. A nil f changes nothing.
func (m *Memory[V]) Change(o metav1.Object, f func(V) V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	r := m.of[key]
	if r.uid != o.GetUID() {
		r = remembered[V]{uid: o.GetUID()}
	}
	if f == nil {
		return r.value
	}
	if m.of == nil {
		m.of = map[types.NamespacedName]remembered[V]{}
	}
	r.value = f(r.value)
	m.of[key] = r
	return r.value
}

// Keep removes the values of all objects for whose keys f returns false.
func (m *Memory[V]) Keep(f func(key types.NamespacedName) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.of, func(key types.NamespacedName, _ remembered[V]) bool { return !f(key) })
}

// Forget removes the value of an object that no longer exists. It returns it with the UID of the object.
func (m *Memory[V]) Forget(key types.NamespacedName) (V, types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of[key]
	delete(m.of, key)
	return r.value, r.uid
}

// Written is the result of the last own write of an object, until the cache shows it. The zero value is
// none.
type Written[T Object] struct {
	uid      types.UID
	object   T // nil if the object was deleted
	expected machine.Expectations
}

// Put returns the result of a write.
func Put[T Object](o T) Written[T] {
	return Written[T]{uid: o.GetUID(), object: o, expected: machine.Expectations{}.Updated(o, time.Time{})}
}

// Gone returns that an object no longer exists.
func Gone[T Object](uid types.UID) Written[T] { return Written[T]{uid: uid} }

// Newest returns the newer of the cached object and the written one, and false if the object no
// longer exists.
func (w Written[T]) Newest(cached T) (T, bool) {
	var none T
	switch {
	case w.uid == "" || w.uid != cached.GetUID():
		return cached, true
	case w.object == none:
		return cached, false
	case len(w.expected.Observe(func(string, string) metav1.Object { return cached }, false)) == 0:
		return cached, true
	default:
		return w.object, true
	}
}

// KeyOf returns the key of an object.
func KeyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Versions returns the versions of an object before and after a change that exist, if they have the
// type T.
func Versions[T Object](before, after metav1.Object) []T {
	var none T
	var versions []T
	for _, o := range []metav1.Object{before, after} {
		if t, ok := o.(T); ok && t != none {
			versions = append(versions, t)
		}
	}
	return versions
}
