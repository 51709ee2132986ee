// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// reconcile makes one pass over an object and returns the time of the next check. Zero means after
// the next change.
type reconcile func(ctx context.Context, key cache.ObjectName) (time.Time, error)

// loop runs the passes of one kind from a work queue. It never runs two passes for a key
// concurrently.
type loop struct {
	kind  string
	cfg   *Config
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	pass  reconcile
}

func newLoop(cfg *Config, kind string, pass reconcile) *loop {
	return &loop{kind: kind, cfg: cfg, pass: pass, queue: cfg.newQueue(kind)}
}

// firstRetry and lastRetry are the shortest and the longest back-off after a failed
// pass.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// newQueue returns a work queue with the given clock.
func newQueue(kind string, c clock.WithTicker, metrics workqueue.MetricsProvider) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: kind, Clock: c, MetricsProvider: metrics})
}

// add enqueues an object.
func (l *loop) add(o metav1.Object) { l.queue.Add(cache.MetaObjectToName(o)) }

// addChanged returns a function that enqueues a set or deployment when it has changed: at once, or after
// [collectFor] if only its status has changed, which its own passes write.
func addChanged[T object](l *loop) func(before, after T) {
	var none T
	return func(before, after T) {
		if before != none && after != none && onlyStatus(before, after) {
			l.queue.AddAfter(cache.MetaObjectToName(after), collectFor(after))
			return
		}
		each(func(o T) { l.add(o) })(before, after)
	}
}

// onlyStatus reports whether nothing but the status differs between two versions of an object, whose
// spec and deletion change its generation.
func onlyStatus(a, b metav1.Object) bool {
	return a.GetGeneration() == b.GetGeneration() &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		slices.Equal(a.GetFinalizers(), b.GetFinalizers()) && equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// collectFor returns how long changes of machines are collected before the next pass over their set, or
// changes of sets before the next pass over their deployment, so that machines that change together
// are counted together. A pass counts all machines: the delay is a millisecond for each of the first
// hundred, and from 300 machines on a third of a millisecond for each of them. So passes take the same
// share of the time for any larger number.
func collectFor(owner any) time.Duration {
	var replicas int32
	switch o := owner.(type) {
	case *v1alpha1.MachineSet:
		replicas = max(o.Spec.Replicas, o.Status.Replicas)
	case *v1alpha1.MachineDeployment:
		replicas = max(o.Spec.Replicas, o.Status.Replicas)
	}
	each := time.Duration(max(replicas, 0)) * time.Millisecond
	return max(min(each, 100*time.Millisecond), each/3)
}

// addOwner enqueues the controller of an object after the delay of the controller, or after wait if
// that is longer. For an object without controller it enqueues all owners of the namespace, which may
// adopt it.
func (l *loop) addOwner(o metav1.Object, owners cache.SharedIndexInformer, wait time.Duration) {
	var keys []string
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		keys = []string{cache.NewObjectName(o.GetNamespace(), owner.Name).String()}
	} else {
		keys, _ = owners.GetIndexer().IndexKeys(cache.NamespaceIndex, o.GetNamespace()) // every informer has this index
	}
	for _, key := range keys {
		owner, _, _ := owners.GetIndexer().GetByKey(key) // nil if it is not there
		if name, err := cache.ParseObjectName(key); err == nil {
			l.queue.AddAfter(name, max(wait, collectFor(owner)))
		}
	}
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

// overdue is the delay of a check that is already due at the end of its pass, so that passes never
// follow each other without a pause.
const overdue = time.Second

// pause returns the delay of a check that is due in the given time.
func pause(due time.Duration) time.Duration {
	if due <= 0 {
		return overdue
	}
	return due
}

func random() float64 { return rand.Float64() } //nolint:gosec // only spreads retries

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

// ignoreNotFound returns nil for a NotFound error, and other errors unchanged.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
