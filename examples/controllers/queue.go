// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// reconcile makes one pass over an object and returns the time of the next check. Zero means after
// the next change.
type reconcile func(ctx context.Context, key types.NamespacedName) (time.Time, error)

// loop runs the passes of one kind from a work queue. It never runs two passes for a key
// concurrently.
type loop struct {
	kind  string
	cfg   *Config
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	pass  reconcile
}

// newLoop returns a loop, and adds it to those of the Config.
func newLoop(cfg *Config, kind string, pass reconcile) *loop {
	l := &loop{kind: kind, cfg: cfg, pass: pass, queue: cfg.newQueue(kind)}
	cfg.loops = append(cfg.loops, l)
	return l
}

// firstRetry and lastRetry are the shortest and the longest back-off after a failed
// pass.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// newQueue returns a work queue with the given clock.
func newQueue(kind string, c clock.WithTicker, metrics workqueue.MetricsProvider) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: kind, Clock: c, MetricsProvider: metrics})
}

// run works until the context ends, and returns after the last pass.
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
	if ctx.Err() != nil { // queued keys are dropped
		return false
	}
	again, err := l.try(ctx, key)
	if err != nil {
		if ctx.Err() == nil {
			if !onlyConflicts(err) { // the next pass reads the newer object
				l.cfg.note(Note{Kind: l.kind, Key: cache.ObjectName(key).String(), Err: err})
			}
			l.queue.AddRateLimited(key)
		}
		return true
	}
	l.queue.Forget(key)
	if !again.IsZero() {
		wait := again.Sub(l.cfg.Clock.Now())
		if wait <= 0 {
			wait = overdue
		}
		l.queue.AddAfter(key, wait)
	}
	return true
}

// overdue is the delay of a check that is already due at the end of its pass, so that passes never
// follow each other without a pause.
const overdue = time.Second

// onlyConflicts reports whether every error that is joined in err is a conflict.
func onlyConflicts(err error) bool {
	switch e := err.(type) { //nolint:errorlint // the function walks the tree itself
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
