// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// keep holds a value per object from one pass to the next. It is safe for several
// goroutines.
type keep[V any] struct {
	mu sync.Mutex
	of map[types.UID]V
}

// change changes the value of an object, which begins as the zero V, and returns
// it.
func (k *keep[V]) change(uid types.UID, f func(V) V) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[types.UID]V{}
	}
	v := f(k.of[uid])
	k.of[uid] = v
	return v
}

// get returns the value of an object.
func (k *keep[V]) get(uid types.UID) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[uid]
}

// forget forgets an object that is gone.
func (k *keep[V]) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, uid)
}
