// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// object is a pointer to an API object of an informer.
type object interface {
	comparable
	metav1.Object
}

// on calls f for every addition, change and deletion of an object, with the object before and
// after. The missing object is nil. An update with another UID is a deletion and an addition. An
// update without a change, as with [Config.Resync], is an addition.
func on[T object](informer cache.SharedIndexInformer, f func(before, after T)) {
	var none T
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only for a stopped informer
		AddFunc: typed(func(o T) { f(none, o) }),
		UpdateFunc: func(old, o any) {
			typed(func(before T) {
				typed(func(after T) {
					switch {
					case before.GetUID() != after.GetUID():
						f(before, none)
						f(none, after)
					case before.GetResourceVersion() == after.GetResourceVersion():
						f(none, after)
					default:
						f(before, after)
					}
				})(o)
			})(old)
		},
		DeleteFunc: typed(func(o T) { f(o, none) }),
	})
}

// each returns a function that calls f with the object before and with the object after.
func each[T object](f func(T)) func(before, after T) {
	return func(before, after T) {
		var none T
		for _, o := range []T{before, after} {
			if o != none {
				f(o)
			}
		}
	}
}

// onDelete calls f with every deleted object.
func onDelete[T object](informer cache.SharedIndexInformer, f func(T)) {
	var none T
	on(informer, func(before, after T) {
		if after == none {
			f(before)
		}
	})
}

// shows returns a function that reports whether the informer has an object with a UID. It must be
// called before the informer starts.
func shows[T object](informer cache.SharedIndexInformer) func(types.UID) bool {
	of := index(informer, "uid", func(o T) []types.UID { return []types.UID{o.GetUID()} })
	return func(uid types.UID) bool { return len(of(uid)) > 0 }
}

// typed returns a function that calls f with an object of its type, also for a deletion that the
// watch missed. A panic of f is logged with its stack. The next change or resync repeats the lost
// work.
func typed[T any](f func(T)) func(any) {
	return func(o any) {
		defer logPanic()
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if t, ok := o.(T); ok {
			f(t)
		}
	}
}

// logPanic recovers from a panic of the function that defers it, and logs the panic with its stack.
func logPanic() {
	if value := recover(); value != nil {
		utilruntime.HandleError(fmt.Errorf("panic: %v\n%s", value, debug.Stack())) //nolint:staticcheck // there is no context here
	}
}

// orNil returns an object, or nil with an error.
func orNil[T any](o *T, err error) *T {
	if err != nil {
		return nil
	}
	return o
}

// index adds an index by the given keys, and returns its lookup function. It must be called before
// the informer starts.
func index[T any, K ~string | cache.ObjectName](informer cache.SharedIndexInformer, name string, keys func(T) []K) func(key K) []T {
	// AddIndexers fails only for a started informer or a duplicate name.
	_ = informer.AddIndexers(cache.Indexers{name: func(o any) (names []string, _ error) {
		defer logPanic()
		if t, ok := o.(T); ok {
			for _, key := range keys(t) {
				names = append(names, fmt.Sprint(key))
			}
		}
		return names, nil
	}})
	return func(key K) []T {
		found, err := informer.GetIndexer().ByIndex(name, fmt.Sprint(key))
		if err != nil {
			return nil
		}
		out := make([]T, 0, len(found))
		for _, o := range found {
			if t, ok := o.(T); ok {
				out = append(out, t)
			}
		}
		return out
	}
}
