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

// object is what informers hand out.
type object interface {
	comparable
	metav1.Object
}

// on calls f with every object before and after it was added, changed or deleted;
// what there is not is nil. An object in whose place the informer shows another one of
// its name, with another UID, was deleted, and the other one was added. An object that is looked at again although nothing has
// changed, as every now and then with [Config.Resync], was added.
func on[T object](informer cache.SharedIndexInformer, f func(before, after T)) {
	var none T
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only once the informer has stopped
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

// each returns what calls f with the object before, and after.
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

// onDelete calls f with every object that is gone.
func onDelete[T object](informer cache.SharedIndexInformer, f func(T)) {
	var none T
	on(informer, func(before, after T) {
		if after == none {
			f(before)
		}
	})
}

// shows returns what says whether the informer shows an object with a UID. It has to be
// called before the informer starts.
func shows[T object](informer cache.SharedIndexInformer) func(types.UID) bool {
	of := index(informer, "uid", func(o T) []types.UID { return []types.UID{o.GetUID()} })
	return func(uid types.UID) bool { return len(of(uid)) > 0 }
}

// typed returns what calls f with an object of its type, also with one that was
// missed when it went. If f panics, that is logged with the stack, and what f would
// have woken up is looked at with the next change or resync.
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

// logPanic ends a panic of the function that defers it, and logs it with its stack.
func logPanic() {
	if value := recover(); value != nil {
		utilruntime.HandleError(fmt.Errorf("panic: %v\n%s", value, debug.Stack())) //nolint:staticcheck // there is no context here
	}
}

// index makes objects findable by what keys returns of them. It has to be called
// before the informer starts.
func index[T any, K ~string | cache.ObjectName](informer cache.SharedIndexInformer, name string, keys func(T) []K) func(key K) []T {
	// It fails only if the informer has started or the name is taken by another index.
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
