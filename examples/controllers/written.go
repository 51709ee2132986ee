// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
)

// written holds the results of own writes until the cache shows them. It holds nothing
// for objects that the cache has lost, because nothing would remove such an entry. It is
// safe for several goroutines.
type written[T object] struct {
	shows func(types.UID) bool // whether the cache shows an object
	mu    sync.Mutex
	held  map[types.UID]held[T]
}

// held is an object that the cache does not show yet. A nil object was deleted.
type held[T object] struct {
	object   T
	expected machine.Expectations
}

func newWritten[T object](shows func(types.UID) bool) *written[T] {
	return &written[T]{shows: shows, held: map[types.UID]held[T]{}}
}

// put records the object that a write returned.
func (w *written[T]) put(o T) {
	w.hold(o.GetUID(), held[T]{o, machine.Expectations{}.Updated(o, time.Time{})})
}

// putDeleted records that an object no longer exists.
func (w *written[T]) putDeleted(uid types.UID) { w.hold(uid, held[T]{}) }

func (w *written[T]) hold(uid types.UID, h held[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var none T
	before, ok := w.held[uid]
	if w.shows(uid) && (!ok || before.object != none) { // a response may arrive after the deletion
		w.held[uid] = h
	}
}

// newest returns the newer of the cached object and the held one. It returns false if the
// object was deleted.
func (w *written[T]) newest(cached T) (T, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var none T
	h, ok := w.held[cached.GetUID()]
	switch {
	case !ok:
		return cached, true
	case h.object == none:
		return cached, false
	case len(h.expected.Observe(func(string, string) metav1.Object { return cached }, false)) == 0:
		delete(w.held, cached.GetUID())
		return cached, true
	default:
		return h.object, true
	}
}

// forget removes an object that the cache has lost.
func (w *written[T]) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, uid)
}
