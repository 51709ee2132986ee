// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// view has the informers of a Run, of one Node and its pods.
type view struct {
	informers *Informers
	watches   map[drain.Source]*watch
	// stop ends all watches, and returns when they have ended.
	stop func()
}

// watch is the watch of one list.
type watch struct {
	// refused returns why the list may not be watched, or nil.
	refused func() error
	// last is the last error that the informer retries.
	last atomic.Value
}

// optional reports whether a drain continues while a list cannot be read. Without it the drain is
// only more cautious.
func optional(source drain.Source) bool {
	return source == drain.SourceBudgets || source == drain.SourceDaemonSets
}

// watch starts the watches of a policy. It returns when each list was read, was refused, or is
// optional and has failed. The function wake is called after each event.
func (e Executor) watch(ctx context.Context, node string, p drain.Policy, wake func()) (*view, error) {
	factories := map[drain.Source]informers.SharedInformerFactory{}
	all, err := newInformers(func(source drain.Source) informers.SharedInformerFactory {
		factories[source] = informers.NewSharedInformerFactoryWithOptions(e.Client, 0,
			informers.WithTweakListOptions(onlyOf(source, node)), informers.WithTransform(withoutManagedFields))
		return factories[source]
	}, p.Sources())
	if err != nil {
		return nil, err
	}
	if err := all.OnChange(func(changed string) { //nolint:contextcheck // an event of an informer has no context
		if changed == node || p.Volumes.ReattachTimeout > 0 { // volumes are attached to other Nodes
			wake()
		}
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	v := &view{informers: all, watches: map[drain.Source]*watch{}, stop: func() {
		cancel()
		for _, factory := range factories {
			factory.Shutdown()
		}
	}}
	ended := make(map[drain.Source]<-chan struct{}, len(all.by))
	for source, list := range all.by {
		ended[source], err = v.start(ctx, source, factories[source], list.informer, wake)
		if err != nil {
			v.stop()
			return nil, err
		}
	}
	for source, list := range all.by {
		select {
		case <-list.informer.HasSyncedChecker().Done():
		case <-ended[source]:
		}
	}
	return v, nil
}

// start watches one list. The channel is closed when the watch has ended, or when an optional list
// has failed. A refusal ends the watch. The informer retries all other errors.
func (v *view) start(ctx context.Context, source drain.Source, factory informers.SharedInformerFactory, informer cache.SharedIndexInformer, wake func()) (<-chan struct{}, error) {
	own, end := context.WithCancelCause(ctx)
	waits, giveUp := context.WithCancel(own)
	w := &watch{refused: func() error {
		if ctx.Err() == nil {
			return context.Cause(own)
		}
		return nil // the Run has ended
	}}
	v.watches[source] = w
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.last.Store(lastError{err})
		if optional(source) {
			giveUp()
		}
		if refused(err) || apierrors.IsNotFound(err) {
			end(err)
			wake()
		}
	})
	if err != nil {
		end(nil)
		giveUp()
		return nil, err
	}
	factory.StartWithContext(own)
	return waits.Done(), nil
}

// lastError has an error of any type for an [atomic.Value], whose values have one type.
type lastError struct{ error }

// observe observes the lists that are watched. It returns an error without the Node or the pods.
func (v *view) observe(ctx context.Context, node string, p drain.Policy, past drain.State) (drain.Observation, error) {
	readable := &Informers{}
	for _, source := range slices.Sorted(maps.Keys(v.watches)) {
		w, list := v.watches[source], v.informers.by[source]
		err := w.refused()
		if err == nil && (!optional(source) || list.informer.HasSynced()) {
			err = readable.add(source, list)
			if last, ok := w.last.Load().(lastError); ok && !list.informer.HasSynced() {
				err = because(objects.ErrNotListed, last.error)
			}
		}
		if err != nil && (source == sourceNodes || source == sourcePods) {
			return drain.Observation{}, observeError(source, err)
		}
	}
	return Observe(ctx, readable, node, p, past)
}

// onlyOf selects the Node and its pods. The API server cannot select other objects by Node.
func onlyOf(source drain.Source, node string) func(*metav1.ListOptions) {
	field := ""
	switch source {
	case sourceNodes:
		field = "metadata.name"
	case sourcePods:
		field = "spec.nodeName"
	default:
		return nil
	}
	return func(o *metav1.ListOptions) { o.FieldSelector = fields.OneTermEqualSelector(field, node).String() }
}

// withoutManagedFields removes the managed fields, which need much memory and which no drain reads.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
