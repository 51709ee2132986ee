// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// latest remembers what our own writes returned until a cache shows it, so that
// nothing is decided on news that we know to be old. What the cache does not show is
// not remembered: an answer may come after the cache has lost its object, and nothing
// would make it forgotten again. It is safe for several goroutines.
type latest[T metav1.Object] struct {
	shows   func(types.UID) bool // whether the cache shows an object
	mu      sync.Mutex
	objects map[types.UID]T
	gone    map[types.UID]bool
}

func newLatest[T metav1.Object](shows func(types.UID) bool) *latest[T] {
	return &latest[T]{shows: shows, objects: map[types.UID]T{}, gone: map[types.UID]bool{}}
}

// put remembers what a write returned.
func (l *latest[T]) put(o T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shows(o.GetUID()) {
		l.objects[o.GetUID()] = o
	}
}

// bury remembers that an object is gone, as long as the cache shows it.
func (l *latest[T]) bury(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, uid)
	if l.shows(uid) {
		l.gone[uid] = true
	}
}

// of returns the newer of what the cache has and what is remembered, or false if
// the object is known to be gone.
func (l *latest[T]) of(cached T) (T, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	uid := cached.GetUID()
	if l.gone[uid] {
		return cached, false
	}
	known, ok := l.objects[uid]
	if !ok {
		return cached, true
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), known.GetResourceVersion())
	if err != nil || order >= 0 {
		delete(l.objects, uid)
		return cached, true
	}
	return known, true
}

// forget forgets an object that the cache has lost.
func (l *latest[T]) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, uid)
	delete(l.gone, uid)
}
