// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// These are the limits of retries and requests.
const (
	firstRetry     = 50 * time.Millisecond
	lastRetry      = 5 * time.Second
	requestTimeout = 15 * time.Second
	shortestWait   = 5 * time.Millisecond
)

// work makes passes over keys: after a change, when they are due, and after a failed pass. It never
// makes two passes over a key concurrently.
type work[K comparable] struct {
	clock   clock.WithTicker
	queue   workqueue.TypedRateLimitingInterface[K]
	observe func(error)
	// pass handles a key and returns the time of the next pass. Zero means after the
	// next change.
	pass func(ctx context.Context, key K) (time.Time, error)
}

func newWork[K comparable](c clock.WithTicker, observe func(error)) *work[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry)
	return &work[K]{clock: c, observe: observe, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[K]{Clock: c})}
}

// run works until the context ends, and returns after the last pass.
func (w *work[K]) run(ctx context.Context, workers int) {
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	working.Wait()
}

// next makes one pass. It returns false after the end.
func (w *work[K]) next(ctx context.Context) bool {
	key, over := w.queue.Get()
	if over {
		return false
	}
	defer w.queue.Done(key)
	if ctx.Err() != nil {
		return true // queued keys are dropped
	}
	timed, cancel := context.WithTimeout(ctx, requestTimeout)
	next, err := w.pass(timed, key)
	cancel()
	switch {
	case err != nil && ctx.Err() == nil:
		w.queue.AddRateLimited(key)
		if w.observe != nil {
			w.observe(err)
		}
	case err == nil:
		w.queue.Forget(key)
		if !next.IsZero() {
			w.queue.AddAfter(key, max(next.Sub(w.clock.Now()), shortestWait))
		}
	}
	return true
}

// newFactory returns informers whose caches omit managedFields.
func newFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(o any) (any, error) {
		if m, err := meta.Accessor(o); err == nil && m.GetManagedFields() != nil {
			m.SetManagedFields(nil)
		}
		return o, nil
	}))
}

// on calls f with every added, changed and deleted object. For a change it calls f with the old and
// with the new object.
func on[T any](informer cache.SharedIndexInformer, f func(T)) {
	call := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if t, ok := o.(T); ok {
			f(t)
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only for a stopped informer
		AddFunc:    call,
		UpdateFunc: func(old, o any) { call(old); call(o) },
		DeleteFunc: call,
	})
}

// index adds an index by a name. It must be called before the informer starts.
func index[T any](informer cache.SharedIndexInformer, name string, key func(T) string) func(string) []T {
	_ = informer.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) { // fails only for a started informer
		t, ok := o.(T)
		if !ok || key(t) == "" {
			return nil, nil
		}
		return []string{key(t)}, nil
	}})
	return func(value string) []T {
		found, err := informer.GetIndexer().ByIndex(name, value)
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
