// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"fmt"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// On calls f for every addition, change and deletion of an object, with the object before and after.
// The missing object is nil. An update with another UID is a deletion and an addition. An update
// without a change, as of a resync, is an addition. It fails only for a stopped informer.
func On(informer cache.SharedIndexInformer, f func(before, after metav1.Object)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { called(f, nil, o) },
		UpdateFunc: func(old, o any) {
			before, was := old.(metav1.Object)
			after, is := o.(metav1.Object)
			switch {
			case !was || !is:
			case before.GetUID() != after.GetUID():
				called(f, old, nil)
				called(f, nil, o)
			case before.GetResourceVersion() == after.GetResourceVersion():
				called(f, nil, o)
			default:
				called(f, old, o)
			}
		},
		DeleteFunc: func(o any) {
			if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = missed.Obj
			}
			called(f, o, nil)
		},
	})
	return err
}

// logPanic recovers from a panic of the function that defers it, and logs the panic with its stack.
func logPanic() {
	if value := recover(); value != nil {
		utilruntime.HandleError(fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
	}
}

// called calls f. A panic is logged with its stack: it must not end the informer. The next change or
// resync repeats the lost work.
func called(f func(before, after metav1.Object), before, after any) {
	defer logPanic()
	b, was := before.(metav1.Object)
	a, is := after.(metav1.Object)
	if was || is {
		f(b, a)
	}
}

// AddIndex adds an index by the given keys to an informer that has none of that name. It fails only for
// a stopped informer.
func AddIndex[T any](informer cache.SharedIndexInformer, name string, keys func(T) []string) error {
	if _, has := informer.GetIndexer().GetIndexers()[name]; has {
		return nil
	}
	return informer.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) {
		defer logPanic()
		if t, ok := o.(T); ok {
			return keys(t), nil
		}
		return nil, nil
	}})
}

// in returns the objects of a namespace, or all for an empty namespace. Without an informer there are
// none.
func in[T any](informer cache.SharedIndexInformer, namespace string) []T {
	switch {
	case informer == nil:
		return nil
	case namespace != "":
		return ByIndex[T](informer, cache.NamespaceIndex, namespace)
	default:
		return typedAll[T](informer.GetStore().List())
	}
}

// typedAll returns the objects of type T.
func typedAll[T any](found []any) []T {
	all := make([]T, 0, len(found))
	for _, o := range found {
		if t, ok := o.(T); ok {
			all = append(all, t)
		}
	}
	return all
}

// ByIndex returns the objects with a key of an index. Without the index it returns none.
func ByIndex[T any](informer cache.SharedIndexInformer, index, key string) []T {
	found, err := informer.GetIndexer().ByIndex(index, key)
	if err != nil {
		return nil
	}
	return typedAll[T](found)
}

// ByKey returns an object of an informer, or nil if there is none.
func ByKey[T any](informer cache.SharedIndexInformer, key types.NamespacedName) (none T) {
	name := key.Name
	if key.Namespace != "" {
		name = key.String()
	}
	o, _, _ := informer.GetIndexer().GetByKey(name) // a map returns no error
	if t, ok := o.(T); ok {
		return t
	}
	return none
}
