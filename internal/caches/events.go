// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
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

// OnChange calls f with each key that an event of an object of the given types affects, and the time for
// which changes are collected. No types mean all. It fails only for a stopped informer, and without informers.
func OnChange[K comparable](
	c *Informers, r machinist.Reader, affected func(ctx context.Context, r machinist.Reader, before, after metav1.Object) map[K]time.Duration,
	f func(key K, after time.Duration), of ...machinist.Object,
) error {
	if c == nil {
		return machinist.ErrNotCached
	}
	informers := c.All
	if len(of) > 0 {
		informers = nil
	}
	for _, o := range of {
		if s := c.by[reflect.TypeOf(o)]; s.informer != nil {
			informers = append(informers, s.informer)
		}
	}
	var errs []error
	for _, informer := range informers {
		errs = append(errs, On(informer, func(before, after metav1.Object) {
			keys := affected(context.Background(), r, before, after)
			order := func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) } // the same each time
			for _, key := range slices.SortedFunc(maps.Keys(keys), order) {
				f(key, keys[key])
			}
		}))
	}
	return errors.Join(errs...)
}
