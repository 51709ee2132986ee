// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watchWindow is how many of the latest events the log keeps at least.
const watchWindow = 10000

// event is one accepted change. Its objects are shared and never modified.
type event struct {
	version       uint64
	kind          *kind
	before, after runtime.Object
}

// eventLog keeps the latest events for watches that start at a resource version.
type eventLog struct {
	events  []event
	dropped uint64 // the log has only later versions
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
	from, _ := slices.BinarySearchFunc(l.events, version+1, func(ev event, v uint64) int { return cmp.Compare(ev.version, v) })
	return l.events[from:]
}

// Compact drops all events, like the compaction of etcd: a watch from an older version than the latest gets 410 Gone, and
// its client has to list again.
func (c *Cluster) Compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.forget(len(c.log.events))
}

// DropWatches closes the open watches of resources, by plural, like a restart of the API server. Without resources it closes
// all. It returns how many it closed. Reflectors watch again.
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

// HoldWatches delays all events of watches until release is called, so that informers are stale. Reads, writes and the first
// list of a new informer are not delayed. A second call of release does nothing.
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

// Watching returns how many watches of a resource, by plural, are open. Empty means all resources.
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

// publish adds an event to the log and to the watches of its object.
func (c *Cluster) publish(ev event) {
	c.log.add(ev)
	for w := range c.watches {
		w.offer(ev)
	}
}

// watch opens a watch. The caller holds c.mu.
//
// Without a resource version, or with 0, it starts with all objects. With one, it starts with the first event after it. A
// version that the log has dropped ends the watch with an event of 410 Gone.
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

// delivery is a queued event of one watch. Its object is copied when it is sent.
type delivery struct {
	watch.Event
	version string // set on the copy that is sent, unless empty
	final   bool   // the last event of the watch
}

// watcher is an open watch. Its queue has no limit, so that writers do not wait for readers.
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

// ResultChan returns the channel of events. It is closed when the watch has ended.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch and drops its queued events.
func (w *watcher) Stop() {
	w.cluster.mu.Lock()
	delete(w.cluster.watches, w)
	w.cluster.mu.Unlock()
	w.cut()
}

func (w *watcher) cut() { w.end.Do(func() { close(w.done) }) }

// offer queues an event if the watch selects its object before or after the change. An object that begins to match is added.
// An object that ceases to match is deleted, with its state before.
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

// take returns the events to send now.
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

// pump sends events until the watch ends.
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

// copied returns the event with a copy of its object.
func (d delivery) copied() watch.Event {
	obj := d.Object.DeepCopyObject()
	if d.version != "" {
		metaOf(obj).SetResourceVersion(d.version)
	}
	return watch.Event{Type: d.Type, Object: obj}
}
