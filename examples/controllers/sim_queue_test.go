// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// handQueue is a work queue without blocking: the schedule chooses which of the due
// keys comes next.
type handQueue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName] // nil: methods that are not simulated panic
	clock                                                  clock.PassiveClock
	ready                                                  map[cache.ObjectName]bool
	later                                                  map[cache.ObjectName]time.Time
	working                                                map[cache.ObjectName]bool
	failures                                               map[cache.ObjectName]int
	chosen                                                 cache.ObjectName
}

func newHandQueue(c clock.PassiveClock) *handQueue {
	return &handQueue{
		clock: c, ready: map[cache.ObjectName]bool{}, later: map[cache.ObjectName]time.Time{},
		working: map[cache.ObjectName]bool{}, failures: map[cache.ObjectName]int{},
	}
}

func (q *handQueue) Add(key cache.ObjectName) { q.ready[key] = true }

func (q *handQueue) AddAfter(key cache.ObjectName, wait time.Duration) {
	if wait <= 0 {
		q.Add(key)
		return
	}
	if at, ok := q.later[key]; !ok || q.clock.Now().Add(wait).Before(at) {
		q.later[key] = q.clock.Now().Add(wait)
	}
}

func (q *handQueue) AddRateLimited(key cache.ObjectName) {
	wait := firstRetry << min(q.failures[key], 20)
	q.failures[key]++
	q.AddAfter(key, min(wait, lastRetry))
}

func (q *handQueue) Forget(key cache.ObjectName)          { delete(q.failures, key) }
func (q *handQueue) NumRequeues(key cache.ObjectName) int { return q.failures[key] }

// Get returns the chosen key.
func (q *handQueue) Get() (cache.ObjectName, bool) {
	delete(q.ready, q.chosen)
	q.working[q.chosen] = true
	return q.chosen, false
}

func (q *handQueue) Done(key cache.ObjectName) { delete(q.working, key) }

// due returns the keys that are due, in order.
func (q *handQueue) due() []cache.ObjectName {
	for key, at := range q.later {
		if !at.After(q.clock.Now()) {
			delete(q.later, key)
			q.ready[key] = true
		}
	}
	if len(q.ready) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(q.ready), func(a, b cache.ObjectName) int {
		switch {
		case a.String() < b.String():
			return -1
		case a == b:
			return 0
		default:
			return 1
		}
	})
}

// next returns when a key becomes due. Zero means never.
func (q *handQueue) next() (next time.Time) {
	for _, at := range q.later {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
