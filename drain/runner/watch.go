// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// view has what a Run watches. As a Reader it has these objects, and reads all others from the API server.
type view struct {
	client  Client
	timeout time.Duration // of one request
	watches map[reflect.Type]*watched
	// stop ends all watches, and returns when they have ended.
	stop func()
}

// watched has the objects of one list, as of the last event of its watch.
type watched struct {
	kind     requests
	timeout  time.Duration // of one request
	field    string        // selects the objects; empty selects all
	optional bool
	changed  func(before, after metav1.Object)
	settled  func() // called when the watch of a list is open or has failed, and when an optional list has failed

	mu      sync.Mutex
	objects map[types.NamespacedName]metav1.Object // nil before the first list
	refused bool                                   // the list may not be watched
	last    error                                  // that of the last request
}

// optional reports whether a drain continues while a list cannot be read. Without it the drain is
// only more cautious.
func optional(source drain.Source) bool {
	return source == drain.SourceBudgets || source == drain.SourceDaemonSets
}

// watch starts the watches of a policy. It returns when each list was read and its watch was opened or
// has failed, when the list was refused, or is optional and has failed. The fake clientsets of client-go
// do not send a watch what happened before they opened it, so no pod is evicted before. The function wake
// is called after each event. A client of another kind than that of [NewClient] watches nothing.
func (e Executor) watch(ctx context.Context, node string, p drain.Policy, wake func()) *view {
	v := &view{client: e.Client, timeout: e.callTimeout(), watches: map[reflect.Type]*watched{}, stop: func() {}}
	c, ok := e.Client.(clientset)
	if !ok {
		return v
	}
	ctx, cancel := context.WithCancel(ctx)
	var running, settling sync.WaitGroup
	v.stop = func() {
		cancel()
		running.Wait()
	}
	for _, source := range append([]drain.Source{sourceNodes, sourcePods}, p.Sources()...) {
		of := objectsOf[source]
		settling.Add(1)
		v.watches[reflect.TypeOf(of)] = &watched{
			kind: c.kind(of), timeout: v.timeout, field: onlyOf(source, node), optional: optional(source), settled: sync.OnceFunc(settling.Done),
			changed: func(before, after metav1.Object) {
				// volumes are attached to other Nodes
				if p.Volumes.ReattachTimeout > 0 || slices.Contains(Affected(ctx, v, before, after), node) {
					wake()
				}
			},
		}
	}
	for _, w := range v.watches {
		running.Go(func() {
			w.run(ctx)
			w.settled()
			wake()
		})
	}
	settling.Wait()
	return v
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

// run lists and watches until the context ends or a request is refused for good. After any error it lists
// again, after a pause of at most 20 seconds.
func (w *watched) run(ctx context.Context) {
	pause := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 20 * time.Second}
	for next := pause; ctx.Err() == nil; {
		started := time.Now()
		err := w.follow(ctx)
		w.mu.Lock()
		w.last = err
		w.refused = refused(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
		refused, listed := w.refused, w.objects != nil
		w.mu.Unlock()
		if refused {
			return
		}
		if w.optional || listed {
			w.settled()
		}
		if time.Since(started) > pause.Cap {
			next = pause
		}
		timer := time.NewTimer(next.Step())
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// errWatchEnded means that the API server ended a watch before its time.
var errWatchEnded = errors.New("the watch has ended")

// follow lists once, and watches from there on until an error.
func (w *watched) follow(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	list, err := w.kind.list(bounded, metav1.ListOptions{FieldSelector: w.field})
	if err != nil {
		return err
	}
	version, err := w.replace(list)
	for err == nil {
		version, err = w.once(ctx, version)
	}
	return err
}

// once watches from a version until the API server ends the watch, and returns the version of the last event.
// A watch that is not open in time fails.
func (w *watched) once(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(w.timeout, cancel)
	defer late.Stop()
	started := time.Now()
	lasts := int64(300 + rand.IntN(300)) //nolint:gosec // it spreads the load
	events, err := w.kind.watch(ctx, metav1.ListOptions{
		FieldSelector: w.field, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &lasts,
	})
	if err != nil {
		return version, err
	}
	late.Stop()
	w.settled()
	if version, err = w.apply(ctx, events, version); err == nil && time.Since(started) < time.Second {
		err = errWatchEnded
	}
	return version, err
}

// replace replaces all objects by those of a list, and returns its version.
func (w *watched) replace(list runtime.Object) (version string, err error) {
	of, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	all := map[types.NamespacedName]metav1.Object{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(metav1.Object); ok {
			o.SetManagedFields(nil) // they need much memory, and no drain reads them
			all[objects.KeyOf(o)] = o
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	before := w.objects
	w.objects = all
	w.mu.Unlock()
	for key, o := range before {
		if all[key] == nil {
			w.changed(o, nil)
		}
	}
	for key, o := range all {
		w.changed(before[key], o)
	}
	return of.GetResourceVersion(), nil
}

// apply applies the events of a watch until it ends, and returns the version of the last one.
func (w *watched) apply(ctx context.Context, events watch.Interface, version string) (string, error) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, ctx.Err()
		case event, open := <-events.ResultChan():
			if !open {
				return version, nil
			}
			o, ok := event.Object.(metav1.Object)
			if event.Type == watch.Error || !ok {
				return version, fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
			}
			version = o.GetResourceVersion()
			if event.Type != watch.Bookmark {
				w.set(o, event.Type == watch.Deleted)
			}
		}
	}
}

// set stores an object, or deletes it.
func (w *watched) set(o metav1.Object, deleted bool) {
	o.SetManagedFields(nil)
	key := objects.KeyOf(o)
	w.mu.Lock()
	before := w.objects[key]
	if deleted {
		delete(w.objects, key)
	} else {
		w.objects[key] = o
	}
	w.mu.Unlock()
	if deleted {
		w.changed(o, nil)
	} else {
		w.changed(before, o)
	}
}

// polls reports whether a list has to be read again without an event.
func (v *view) polls() bool {
	for _, w := range v.watches {
		w.mu.Lock()
		refused := w.refused
		w.mu.Unlock()
		if refused {
			return true
		}
	}
	return len(v.watches) == 0
}

// find returns the objects of a type that are watched. read is false for objects to read from the API server.
func (v *view) find(o machinist.Object, selected func(machinist.Object) bool) (found []machinist.Object, read bool, err error) {
	w := v.watches[reflect.TypeOf(o)]
	if w == nil {
		return nil, false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.refused:
		return nil, false, nil
	case w.objects == nil && w.optional:
		return nil, true, machinist.ErrNotCached
	case w.objects == nil:
		return nil, true, because(objects.ErrNotListed, w.last)
	}
	for _, o := range w.objects {
		if selected(o) {
			found = append(found, o)
		}
	}
	return found, true, nil
}

// Get implements [machinist.Reader].
func (v *view) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	key := objects.KeyOf(o)
	found, read, err := v.find(o, func(o machinist.Object) bool { return objects.KeyOf(o) == key })
	switch {
	case !read:
		ctx, cancel := context.WithTimeout(ctx, v.timeout)
		defer cancel()
		return v.client.Get(ctx, o)
	case len(found) == 0:
		return nil, err
	default:
		return found[0], err
	}
}

// List implements [machinist.Reader].
func (v *view) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	found, read, err := v.find(o, func(one machinist.Object) bool {
		return (o.GetNamespace() == "" || o.GetNamespace() == one.GetNamespace()) && (index == "" || hasKey(one, index, key))
	})
	if !read {
		ctx, cancel := context.WithTimeout(ctx, v.timeout)
		defer cancel()
		return v.client.List(ctx, o, index, key)
	}
	return found, err
}
