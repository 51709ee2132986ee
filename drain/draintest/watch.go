// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watchWindow is how many events are remembered at least for watches that start in the past.
const watchWindow = 10000

// event is one accepted change. Its objects are shared and never modified.
type event struct {
	version       uint64
	kind          *kind
	before, after runtime.Object
}

// eventLog remembers the latest events for watches that start in the past.
type eventLog struct {
	events  []event
	dropped uint64 // versions up to this one are forgotten
}

func (l *eventLog) add(ev event) {
	l.events = append(l.events, ev)
	if len(l.events) > 2*watchWindow {
		l.forget(len(l.events) - watchWindow)
	}
}

// forget drops the oldest n events.
func (l *eventLog) forget(n int) {
	if n <= 0 {
		return
	}
	l.dropped = l.events[n-1].version
	l.events = slices.Clone(l.events[n:])
}

func (l *eventLog) since(version uint64) []event {
	from, _ := slices.BinarySearchFunc(l.events, version+1, func(ev event, v uint64) int {
		switch {
		case ev.version < v:
			return -1
		case ev.version > v:
			return 1
		default:
			return 0
		}
	})
	return l.events[from:]
}

// Compact forgets the past, as the compaction of a real store does: a watch that asks for an older version than the
// latest gets 410 Gone, and its client has to list again.
func (c *Cluster) Compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.forget(len(c.log.events))
}

// DropWatches closes the open watches of the given resources (by their plural name), or all of them if none is named, as a
// restart of the server does. It returns how many were closed. Reflectors come back by themselves.
func (c *Cluster) DropWatches(resources ...string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropWatches(resources)
}

func (c *Cluster) dropWatches(resources []string) int {
	dropped := 0
	for w := range c.watches {
		if len(resources) == 0 || slices.Contains(resources, w.kind.gvr.Resource) {
			w.cut()
			delete(c.watches, w)
			dropped++
		}
	}
	return dropped
}

// HoldWatches keeps all events back until the returned function is called: what clients see through informers stays
// as it is while the store moves on. Reads and writes are not affected, and neither is the first list of a new
// informer. Calling release again does nothing.
func (c *Cluster) HoldWatches() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holdAll(true)
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.holdAll(false)
	})
}

func (c *Cluster) holdAll(held bool) {
	c.held = held
	for w := range c.watches {
		w.hold(held)
	}
}

// Watching returns how many watches of a resource (by its plural name) are open; an empty name counts all.
func (c *Cluster) Watching(resource string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for w := range c.watches {
		if resource == "" || w.kind.gvr.Resource == resource {
			n++
		}
	}
	return n
}

// publish hands an event to the log and to every watch that it concerns.
func (c *Cluster) publish(ev event) {
	c.log.add(ev)
	for w := range c.watches {
		w.offer(ev)
	}
}

// watch opens a watch. The caller holds c.mu.
//
// Without a resource version, or with 0, it starts with all objects there are; with one, with the first event after
// it. A version that is no longer in the log ends the watch with 410 Gone, delivered as an event, as the server does.
func (c *Cluster) watch(k *kind, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	sel, err := newSelector(k, namespace, opts)
	if err != nil {
		return nil, err
	}
	from, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return nil, internal(err.Error())
	}
	w := newWatcher(c, k, sel, c.held)
	switch {
	case from == 0:
		if err := c.replayState(w, opts); err != nil {
			return nil, err
		}
	case from < c.log.dropped:
		gone := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, c.log.dropped))
		w.push(delivery{Event: watch.Event{Type: watch.Error, Object: &gone.ErrStatus}, final: true})
		w.hold(false)
	default:
		for _, ev := range c.log.since(from) {
			w.offer(ev)
		}
	}
	c.watches[w] = struct{}{}
	go w.pump()
	return w, nil
}

// replayState starts a watch with an ADDED event for each object.
func (c *Cluster) replayState(w *watcher, opts metav1.ListOptions) error {
	list, err := c.list(w.kind, w.sel.namespace, metav1.ListOptions{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector})
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	for _, item := range items {
		w.push(delivery{Event: watch.Event{Type: watch.Added, Object: item}})
	}
	return nil
}

// delivery is an event on its way to one watch. The object is shared until it is sent.
type delivery struct {
	watch.Event
	version string // set on the copy that is sent, unless empty
	final   bool   // the watch ends after it
}

// watcher is one open watch. Its queue has no limit, so that a slow reader never holds up a writer.
type watcher struct {
	cluster *Cluster
	kind    *kind
	sel     selector
	result  chan watch.Event
	ready   chan struct{}
	done    chan struct{}
	end     sync.Once

	mu    sync.Mutex
	queue []delivery
	held  bool
}

var _ watch.Interface = (*watcher)(nil)

func newWatcher(c *Cluster, k *kind, sel selector, held bool) *watcher {
	return &watcher{
		cluster: c, kind: k, sel: sel, held: held,
		result: make(chan watch.Event), ready: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// ResultChan is closed when the watch has ended.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch; what was not yet read is lost.
func (w *watcher) Stop() {
	w.cluster.mu.Lock()
	delete(w.cluster.watches, w)
	w.cluster.mu.Unlock()
	w.cut()
}

func (w *watcher) cut() { w.end.Do(func() { close(w.done) }) }

// offer queues an event if the watch selects its object, before or after: an object that comes into the selection is
// added, and one that leaves it is deleted, with the state that it had.
func (w *watcher) offer(ev event) {
	if ev.kind != w.kind {
		return
	}
	was, is := w.sel.matches(w.kind, ev.before), w.sel.matches(w.kind, ev.after)
	switch {
	case was && is:
		w.push(delivery{Event: watch.Event{Type: watch.Modified, Object: ev.after}})
	case is:
		w.push(delivery{Event: watch.Event{Type: watch.Added, Object: ev.after}})
	case was:
		w.push(delivery{Event: watch.Event{Type: watch.Deleted, Object: ev.before}, version: formatVersion(ev.version)})
	}
}

func (w *watcher) push(d delivery) {
	w.mu.Lock()
	w.queue = append(w.queue, d)
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) hold(held bool) {
	w.mu.Lock()
	w.held = held
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// take returns what can be sent now.
func (w *watcher) take() []delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held {
		return nil
	}
	taken := w.queue
	w.queue = nil
	return taken
}

// pump sends until the watch ends.
func (w *watcher) pump() {
	defer close(w.result)
	for {
		for _, d := range w.take() {
			select {
			case <-w.done:
				return
			case w.result <- d.copied():
			}
			if d.final {
				w.Stop()
				return
			}
		}
		select {
		case <-w.done:
			return
		case <-w.ready:
		}
	}
}

// copied returns the event with an object that the reader may keep and change.
func (d delivery) copied() watch.Event {
	obj := d.Object.DeepCopyObject()
	if d.version != "" {
		if m, err := meta.Accessor(obj); err == nil {
			m.SetResourceVersion(d.version)
		}
	}
	return watch.Event{Type: d.Type, Object: obj}
}
