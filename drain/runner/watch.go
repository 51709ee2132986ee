// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// view has what a Run watches. It reads the other objects from the API server in each step.
type view struct {
	client  Client
	watches map[drain.Source]*watched
	// stop ends all watches, and returns when they have ended.
	stop func()
}

// watched is the watch of one list.
type watched struct {
	of       machinist.Object
	informer cache.SharedIndexInformer
	// refused means that the list may not be watched.
	refused atomic.Bool
	// last is the last error that the informer retries.
	last atomic.Value
}

// optional reports whether a drain continues while a list cannot be read. Without it the drain is
// only more cautious.
func optional(source drain.Source) bool {
	return source == drain.SourceBudgets || source == drain.SourceDaemonSets
}

// watch starts the watches of a policy. It returns when each list was read, was refused, or is
// optional and has failed. The function wake is called after each event. A client of another kind than
// that of [NewClient] watches nothing.
func (e Executor) watch(ctx context.Context, node string, p drain.Policy, wake func()) (*view, error) {
	v := &view{client: e.Client, watches: map[drain.Source]*watched{}, stop: func() {}}
	c, ok := e.Client.(clientset)
	if !ok {
		return v, nil
	}
	for _, source := range append([]drain.Source{sourceNodes, sourcePods}, p.Sources()...) {
		of := objectOf(source)
		informer, err := c.informer(of.(runtime.Object), c.kind(of), onlyOf(source, node)) //nolint:forcetypeassert // typed objects are
		if err != nil {
			return nil, err
		}
		v.watches[source] = &watched{of: of, informer: informer}
	}
	everything := &objects.Informers{}
	for _, w := range v.watches {
		if err := everything.Target(w.of, w.informer, nil, Indexes()); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	v.stop = func() {
		cancel()
		running.Wait()
	}
	synced := make([]<-chan struct{}, 0, len(v.watches))
	for source, w := range v.watches {
		err := objects.On(w.informer, func(before, after metav1.Object) {
			// volumes are attached to other Nodes
			if p.Volumes.ReattachTimeout > 0 || slices.Contains(Affected(ctx, everything, before, after), node) {
				wake()
			}
		})
		if err == nil {
			var settled <-chan struct{}
			settled, err = w.start(ctx, &running, optional(source), wake)
			synced = append(synced, settled)
		}
		if err != nil {
			v.stop()
			return nil, err
		}
	}
	for _, settled := range synced {
		<-settled
	}
	return v, nil
}

// start watches one list. The channel is closed when the list was read, when the watch has ended, or when an
// optional list has failed. A refusal ends the watch. The informer retries all other errors.
func (w *watched) start(ctx context.Context, running *sync.WaitGroup, optional bool, wake func()) (<-chan struct{}, error) {
	ctx, end := context.WithCancel(ctx)
	settled, settle := context.WithCancel(ctx)
	err := w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.last.Store(lastError{err})
		if optional {
			settle()
		}
		if refused(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			w.refused.Store(true)
			end()
			wake()
		}
	})
	if err != nil {
		end()
		settle()
		return nil, err
	}
	running.Go(func() {
		w.informer.RunWithContext(ctx)
		end()
	})
	running.Go(func() {
		select {
		case <-w.informer.HasSyncedChecker().Done():
		case <-settled.Done():
		}
		settle()
	})
	return settled.Done(), nil
}

// lastError has an error of any type for an [atomic.Value], whose values have one type.
type lastError struct{ error }

// polls reports whether a list has to be read again without an event.
func (v *view) polls() bool {
	if len(v.watches) == 0 {
		return true
	}
	for _, w := range v.watches {
		if w.refused.Load() {
			return true
		}
	}
	return false
}

// observe observes the lists that are watched, and reads those that may not be watched from the API server.
func (v *view) observe(ctx context.Context, node string, p drain.Policy, past drain.State) (drain.Observation, error) {
	readable := &objects.Informers{Else: v.client}
	for _, source := range slices.Sorted(maps.Keys(v.watches)) {
		w := v.watches[source]
		var err error
		switch {
		case w.refused.Load():
		case w.informer.HasSynced():
			err = readable.Target(w.of, w.informer, nil, Indexes())
		case optional(source):
			err = readable.Target(w.of, nil, machinist.ErrNotCached, Indexes())
		default:
			err = objects.ErrNotListed
			if last, ok := w.last.Load().(lastError); ok {
				err = because(err, last.error)
			}
		}
		if err != nil {
			return drain.Observation{}, observeError(source, err)
		}
	}
	return Observe(ctx, readable, node, p, past)
}

// onlyOf returns the field selector of the Node or its pods. The API server cannot select other objects by
// Node.
func onlyOf(source drain.Source, node string) string {
	switch source {
	case sourceNodes:
		return fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
	case sourcePods:
		return fields.OneTermEqualSelector("spec.nodeName", node).String()
	default:
		return ""
	}
}
