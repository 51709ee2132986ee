// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine"
)

// Memory keeps a value for each object between passes. The zero value is empty. It is safe for
// concurrent use.
type Memory[V any] struct {
	mu sync.Mutex
	of map[types.NamespacedName]*remembered[V]
}

// remembered is the value of the object with a UID.
type remembered[V any] struct {
	uid   types.UID
	value V
}

// Get returns the value of an object. For another object of its name, and for an unknown one, that is
// the zero value.
func (m *Memory[V]) Get(o metav1.Object) (none V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.of[objects.KeyOf(o)]; r != nil && r.uid == o.GetUID() {
		return r.value
	}
	return none
}

// Change changes the value of an object, which is the zero value at first, and returns it.
func (m *Memory[V]) Change(o metav1.Object, change func(*V)) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]*remembered[V]{}
	}
	r := m.of[objects.KeyOf(o)]
	if r == nil || r.uid != o.GetUID() {
		r = &remembered[V]{uid: o.GetUID()}
		m.of[objects.KeyOf(o)] = r
	}
	change(&r.value)
	return r.value
}

// Forget removes the value of an object that no longer exists. It returns it with the UID of the object.
func (m *Memory[V]) Forget(key types.NamespacedName) (none V, _ types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of[key]
	if r == nil {
		return none, ""
	}
	delete(m.of, key)
	return r.value, r.uid
}

// Own has the results of own writes until the cache shows them. The zero value is empty. It is safe for
// concurrent use.
type Own[T objects.Object] struct {
	mu sync.Mutex
	of map[types.NamespacedName]written[T]
}

// written is the last own write of the object with a UID.
type written[T objects.Object] struct {
	uid      types.UID
	object   T // nil if the object was deleted
	expected machine.Expectations
}

// Put records the object that a write returned.
func (w *Own[T]) Put(o T) {
	w.put(o, written[T]{o.GetUID(), o, machine.Expectations{}.Updated(o, time.Time{})})
}

// PutDeleted records that an object no longer exists.
func (w *Own[T]) PutDeleted(o T) { w.put(o, written[T]{uid: o.GetUID()}) }

func (w *Own[T]) put(o T, last written[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[types.NamespacedName]written[T]{}
	}
	w.of[objects.KeyOf(o)] = last
}

// Newest returns the newer of the cached object and the written one, and false if the object no longer
// exists. A write that the cache shows is dropped.
func (w *Own[T]) Newest(cached T) (T, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var none T
	switch last := w.of[objects.KeyOf(cached)]; {
	case last.uid == "" || last.uid != cached.GetUID():
		return cached, true
	case last.object == none:
		return cached, false
	case len(last.expected.Observe(func(string, string) metav1.Object { return cached }, false)) == 0:
		delete(w.of, objects.KeyOf(cached))
		return cached, true
	default:
		return last.object, true
	}
}

// Forget drops the write of an object that no longer exists.
func (w *Own[T]) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, key)
}

// ForgetAll drops the writes of the objects for whose keys gone returns true.
func (w *Own[T]) ForgetAll(gone func(key types.NamespacedName) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.of, func(key types.NamespacedName, _ written[T]) bool { return gone(key) })
}
