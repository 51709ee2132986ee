// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// onDelete calls f with every object that is gone.
func onDelete[T any](informer cache.SharedIndexInformer, f func(T)) {
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: typed(f)}) // fails only once the informer has stopped
}

// typed returns what calls f with an object of its type, also with one that was
// missed when it went.
func typed[T any](f func(T)) func(any) {
	return func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if t, ok := o.(T); ok {
			f(t)
		}
	}
}

// on calls f with every object that is added, changed or deleted; of a change,
// with the old and the new one.
func on[T any](informer cache.SharedIndexInformer, f func(T)) {
	call := typed(f)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only once the informer has stopped
		AddFunc:    call,
		UpdateFunc: func(old, o any) { call(old); call(o) },
		DeleteFunc: call,
	})
}

// index makes objects findable by what keys returns of them. It has to be called
// before the informer starts.
func index[T any, K ~string | cache.ObjectName](informer cache.SharedIndexInformer, name string, keys func(T) []K) func(key K) []T {
	// It fails only if the informer has started or the name is taken by another index.
	_ = informer.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) {
		var names []string
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
