// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// reconcile makes one pass over an object and returns when to look again; zero
// means when something changes.
type reconcile func(ctx context.Context, key cache.ObjectName) (time.Time, error)

// loop runs one kind's passes from a work queue. No key is worked on twice at a
// time.
type loop struct {
	kind  string
	cfg   *Config
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	pass  reconcile
}

func newLoop(cfg *Config, kind string, pass reconcile) *loop {
	return &loop{kind: kind, cfg: cfg, pass: pass, queue: cfg.newQueue(kind)}
}

// firstRetry and lastRetry are the shortest and the longest pause after a pass
// that failed.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// newQueue makes a work queue that goes by a clock.
func newQueue(kind string, c clock.WithTicker, metrics workqueue.MetricsProvider) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: kind, Clock: c, MetricsProvider: metrics})
}

// add asks for a pass over an object.
func (l *loop) add(o metav1.Object) { l.queue.Add(cache.MetaObjectToName(o)) }

// addOwner asks for a pass over the controller of an object; without one, over all
// in its namespace that may want it.
func (l *loop) addOwner(o metav1.Object, owners cache.SharedIndexInformer) {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		l.queue.Add(cache.NewObjectName(o.GetNamespace(), owner.Name))
		return
	}
	keys, _ := owners.GetIndexer().IndexKeys(cache.NamespaceIndex, o.GetNamespace()) // which every informer has
	for _, key := range keys {
		if name, err := cache.ParseObjectName(key); err == nil {
			l.queue.Add(name)
		}
	}
}

// addOwnerAfter asks for a pass over the controller of an object, if it has one,
// after a while.
func (l *loop) addOwnerAfter(o metav1.Object, wait time.Duration) {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		l.queue.AddAfter(cache.NewObjectName(o.GetNamespace(), owner.Name), wait)
	}
}

// run works until the context ends, and returns when all passes have.
func (l *loop) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range l.cfg.Workers {
		workers.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	workers.Wait()
}

func (l *loop) next(ctx context.Context) bool {
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil { // what is still queued is left
		return false
	}
	again, err := l.try(ctx, key)
	if err != nil {
		if ctx.Err() == nil {
			if !onlyConflicts(err) { // after a conflict it is enough to look again
				l.cfg.note(Note{Kind: l.kind, Key: key.String(), Err: err})
			}
			l.queue.AddRateLimited(key)
		}
		return true
	}
	l.queue.Forget(key)
	if !again.IsZero() {
		l.queue.AddAfter(key, pause(again.Sub(l.cfg.Clock.Now())))
	}
	return true
}

// overdue is the pause before an object is looked at again whose time to look has come
// already when its pass ends. Whatever a decision says, no pass follows the one before it
// at once.
const overdue = time.Second

// pause returns how long to wait for a look that is due in so long.
func pause(due time.Duration) time.Duration {
	if due <= 0 {
		return overdue
	}
	return due
}

func random() float64 { return rand.Float64() } //nolint:gosec // spreads retries, guards nothing

// onlyConflicts reports whether every error that is joined in err is a conflict.
func onlyConflicts(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case apierrors.APIStatus:
		return apierrors.IsConflict(err)
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(one error) bool { return !onlyConflicts(one) })
	case interface{ Unwrap() error }:
		return onlyConflicts(e.Unwrap())
	default:
		return false
	}
}

// ignoreNotFound takes the absence of an object for an answer.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
