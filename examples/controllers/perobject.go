// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// perObject holds a value per object between passes. It is safe for several goroutines.
type perObject[V any] struct {
	mu sync.Mutex
	of map[types.UID]V
}

// change applies f to the value of an object and returns the new value. The first value is the zero
// V.
func (k *perObject[V]) change(uid types.UID, f func(V) V) V {
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
func (k *perObject[V]) get(uid types.UID) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[uid]
}

// forget removes the value of a deleted object.
func (k *perObject[V]) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, uid)
}
