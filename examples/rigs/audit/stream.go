// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// stream records the changes of one kind.
type stream struct {
	recorder *Recorder
	resource string
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	moved    chan struct{} // signals a new event

	mu      sync.Mutex
	known   map[types.UID]runtime.Object
	version uint64    // nothing is missing up to this version
	open    bool      // reports whether a watch is open
	heard   time.Time // writes until then have arrived or are pending
	late    time.Time // events until then may be delayed
}

const (
	// retryAfter is the pause after a failure.
	retryAfter = 50 * time.Millisecond
	// pause is how long a stream may be without a watch until its next events count as
	// delayed.
	pause = 100 * time.Millisecond
	// backlog is how long events count as delayed after such a pause. It is also the
	// maximum delay between two streams.
	backlog = 2 * time.Second
)

// run records changes until the context ends.
func (s *stream) run(ctx context.Context) {
	forgotten := false
	for ctx.Err() == nil {
		var err error
		if forgotten {
			err = s.relist(ctx)
		} else {
			err = s.follow(ctx)
		}
		forgotten = apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || forgotten && err != nil
		if err != nil && !apierrors.IsResourceExpired(err) {
			select {
			case <-ctx.Done():
			case <-time.After(retryAfter):
			}
		}
	}
}

// follow watches from the version of the stream until the watch ends.
func (s *stream) follow(ctx context.Context) error {
	s.mu.Lock()
	from := strconv.FormatUint(s.version, 10)
	s.mu.Unlock()
	w, err := s.watch(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	s.opened()
	defer s.closed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if err := s.take(e); err != nil {
				return err
			}
		}
	}
}

// opened records that a watch was opened. Its first events may be delayed.
func (s *stream) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
	if now := time.Now(); now.Sub(s.heard) > pause {
		s.late = now.Add(backlog)
	}
}

// closed records that the watch has ended.
func (s *stream) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard, s.open = s.upTo(), false
}

// upTo returns the time until which nothing is missing except pending events.
func (s *stream) upTo() time.Time {
	if now := time.Now(); s.open && !now.Before(s.late) {
		return now
	}
	return s.heard
}

// end returns the gap after the last event.
func (s *stream) end() Gap {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.upTo()
	return Gap{Resource: s.resource, After: max(s.version, s.recorder.seen(from.Add(-backlog))), From: from}
}

// take records one event.
func (s *stream) take(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	m, version, err := read(e.Object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if e.Type != watch.Bookmark {
		c := Change{Time: now, Version: version, Object: e.Object, Gone: e.Type == watch.Deleted}
		if now.Before(s.late) {
			c.Since = s.heard
		}
		s.recorder.write([]Change{c})
		s.remember(m.GetUID(), c)
	}
	s.version, s.heard = max(s.version, version), s.upTo()
	select {
	case s.moved <- struct{}{}:
	default:
	}
	return nil
}

// remember stores the last version of an object.
func (s *stream) remember(uid types.UID, c Change) {
	if c.Gone {
		delete(s.known, uid)
	} else {
		s.known[uid] = c.Object
	}
}

// read returns the metadata and the resource version of an object.
func read(o runtime.Object) (metav1.Object, uint64, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, 0, err
	}
	version, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("resource version: %w", err)
	}
	return m, version, nil
}

// listed returns the objects of a list, and its version.
func (s *stream) listed(ctx context.Context) (map[types.UID]runtime.Object, uint64, error) {
	list, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	l, err := meta.ListAccessor(list)
	if err != nil {
		return nil, 0, err
	}
	version, err := strconv.ParseUint(l.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("resource version: %w", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, 0, err
	}
	found := make(map[types.UID]runtime.Object, len(items))
	for _, item := range items {
		m, err := meta.Accessor(item)
		if err != nil {
			return nil, 0, err
		}
		found[m.GetUID()] = item
	}
	return found, version, nil
}

// relist records the difference to a list, and a gap.
func (s *stream) relist(ctx context.Context) error {
	found, version, err := s.listed(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var changes []Change
	for _, uid := range slices.Sorted(maps.Keys(s.known)) {
		if _, there := found[uid]; !there {
			changes = append(changes, Change{Time: now, Since: s.heard, Version: version, Object: s.known[uid], Gone: true, Listed: true})
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(found)) {
		if !same(s.known[uid], found[uid]) {
			changes = append(changes, Change{Time: now, Since: s.heard, Version: version, Object: found[uid], Listed: true})
		}
	}
	after := max(s.version, s.recorder.seen(s.heard.Add(-backlog)))
	s.recorder.write(changes, Gap{Resource: s.resource, After: after, Until: version, From: s.heard, To: now})
	s.known, s.version, s.heard = found, version, now
	return nil
}

// same reports whether two objects have the same UID and version.
func same(a, b runtime.Object) bool {
	if a == nil || b == nil {
		return false
	}
	m, _, err := read(a)
	n, _, err2 := read(b)
	return err == nil && err2 == nil && m.GetUID() == n.GetUID() && m.GetResourceVersion() == n.GetResourceVersion()
}

// catchUp waits until the stream has the objects of a list. It returns false if the context ends
// first.
func (s *stream) catchUp(ctx context.Context) bool {
	found, version, err := s.listed(ctx)
	for err != nil {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryAfter):
		}
		found, version, err = s.listed(ctx)
	}
	for !s.has(found, version) {
		select {
		case <-ctx.Done():
			return false
		case <-s.moved:
		case <-time.After(retryAfter):
		}
	}
	if ctx.Err() != nil {
		return false // the context has ended; the result of the list is not used
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = max(s.version, version)
	return true
}

// has reports whether the stream has all changes up to a list. Without an open watch, equal objects
// do not prove that, because short-lived objects may be missing.
func (s *stream) has(found map[types.UID]runtime.Object, version uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version >= version {
		return true
	}
	if !s.open || time.Now().Before(s.late) {
		return false
	}
	for uid, o := range s.known {
		if _, at, err := read(o); err == nil && at <= version && found[uid] == nil {
			return false // its end is pending
		}
	}
	for uid, o := range found {
		if _, at, err := read(o); err == nil && at > s.version && !same(s.known[uid], o) {
			return false
		}
	}
	return true
}
