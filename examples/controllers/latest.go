// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
)

// latest holds the objects that our own writes returned until the cache shows them.
// What the cache has lost is not held: nothing would make it forgotten again. It is safe
// for several goroutines.
type latest[T object] struct {
	shows func(types.UID) bool // whether the cache shows an object
	mu    sync.Mutex
	held  map[types.UID]held[T]
}

// held is an object that the cache does not show yet, or nil for one that is gone.
type held[T object] struct {
	object   T
	expected machine.Expectations
}

func newLatest[T object](shows func(types.UID) bool) *latest[T] {
	return &latest[T]{shows: shows, held: map[types.UID]held[T]{}}
}

// put holds what a write returned.
func (l *latest[T]) put(o T) {
	l.hold(o.GetUID(), held[T]{o, machine.Expectations{}.Updated(o, time.Time{})})
}

// bury holds that an object is gone.
func (l *latest[T]) bury(uid types.UID) { l.hold(uid, held[T]{}) }

func (l *latest[T]) hold(uid types.UID, h held[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone T
	before, ok := l.held[uid]
	if l.shows(uid) && (!ok || before.object != gone) { // an answer may come after the end of its object
		l.held[uid] = h
	}
}

// of returns the newer of what the cache has and what is held, or false if the object
// is known to be gone.
func (l *latest[T]) of(cached T) (T, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone T
	h, ok := l.held[cached.GetUID()]
	switch {
	case !ok:
		return cached, true
	case h.object == gone:
		return cached, false
	case len(h.expected.Observe(func(string, string) metav1.Object { return cached }, false)) == 0:
		delete(l.held, cached.GetUID())
		return cached, true
	default:
		return h.object, true
	}
}

// forget forgets an object that the cache has lost.
func (l *latest[T]) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, uid)
}
