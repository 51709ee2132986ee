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
)

// view is what a Run sees: informers of its own, of one Node and its pods.
type view struct {
	informers *Informers
	watches   map[drain.Source]*watch
	// stop ends all watches, and returns when they have ended.
	stop func()
}

// watch is one source that is watched.
type watch struct {
	// refused says why it may not be watched, or nil.
	refused func() error
	// trouble is what was last wrong, and is tried again.
	trouble atomic.Value
}

// spared reports whether a drain goes on without a source that fails as long as it does: what
// it would say makes a drain only more cautious if it is not known.
func spared(source drain.Source) bool {
	return source == drain.SourceBudgets || source == drain.SourceDaemonSets
}

// watch starts to watch what a policy has a use for, and returns when everything was
// seen once that may be seen, or is spared because it fails. The function wake is called
// after each event.
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
	if err := all.OnChange(func(changed string) {
		if changed == node || p.Volumes.ReattachTimeout > 0 { // volumes are waited for at other Nodes
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
	hopeless := make(map[drain.Source]<-chan struct{}, len(all.by))
	for source, informer := range all.by {
		hopeless[source], err = v.start(ctx, source, factories[source], informer, wake)
		if err != nil {
			v.stop()
			return nil, err
		}
	}
	for source, informer := range all.by {
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-hopeless[source]:
		}
	}
	return v, nil
}

// start watches one source, and returns what is closed when there is no use to wait for
// it: when it has ended, or failed and is spared. A refusal ends it for good; anything
// else is tried again by the informer.
func (v *view) start(ctx context.Context, source drain.Source, factory informers.SharedInformerFactory, informer cache.SharedIndexInformer, wake func()) (<-chan struct{}, error) {
	own, end := context.WithCancelCause(ctx)
	hope, lose := context.WithCancel(own)
	w := &watch{refused: func() error {
		if ctx.Err() == nil {
			return context.Cause(own)
		}
		return nil // all of them have ended
	}}
	v.watches[source] = w
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.trouble.Store(trouble{err})
		if spared(source) {
			lose()
		}
		if refused(err) || apierrors.IsNotFound(err) {
			end(err)
			wake()
		}
	})
	if err != nil {
		end(nil)
		lose()
		return nil, err
	}
	factory.StartWithContext(own)
	return hope.Done(), nil
}

// trouble is an error of any type.
type trouble struct{ error }

// reader returns the lists that may be watched. The Node and its pods have to be.
func (v *view) reader() (*Informers, error) {
	watched := &Informers{by: make(map[drain.Source]cache.SharedIndexInformer, len(v.watches))}
	for _, source := range slices.Sorted(maps.Keys(v.watches)) {
		w, informer := v.watches[source], v.informers.by[source]
		err := w.refused()
		if err == nil && (!spared(source) || informer.HasSynced()) {
			watched.by[source] = informer
			if last, ok := w.trouble.Load().(trouble); ok && !informer.HasSynced() {
				err = because(errNotSynced, last.error)
			}
		}
		if err != nil && (source == sourceNodes || source == sourcePods) {
			return nil, observeError(source, err)
		}
	}
	return watched, nil
}

// onlyOf selects the Node and its pods. Servers cannot select anything else by Node.
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

// withoutManagedFields forgets what no drain reads, and what takes most of the room.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
