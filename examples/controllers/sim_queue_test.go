// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// handQueue is a work queue without blocking: the schedule chooses which of the due
// keys comes next.
type handQueue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName] // nil: methods that are not simulated panic
	clock                                                      clock.PassiveClock
	ready                                                      map[types.NamespacedName]bool
	later                                                      map[types.NamespacedName]time.Time
	working                                                    map[types.NamespacedName]bool
	failures                                                   map[types.NamespacedName]int
	chosen                                                     types.NamespacedName
}

func newHandQueue(c clock.PassiveClock) *handQueue {
	return &handQueue{
		clock: c, ready: map[types.NamespacedName]bool{}, later: map[types.NamespacedName]time.Time{},
		working: map[types.NamespacedName]bool{}, failures: map[types.NamespacedName]int{},
	}
}

func (q *handQueue) Add(key types.NamespacedName) { q.ready[key] = true }

func (q *handQueue) AddAfter(key types.NamespacedName, wait time.Duration) {
	if wait <= 0 {
		q.Add(key)
		return
	}
	if at, ok := q.later[key]; !ok || q.clock.Now().Add(wait).Before(at) {
		q.later[key] = q.clock.Now().Add(wait)
	}
}

func (q *handQueue) AddRateLimited(key types.NamespacedName) {
	wait := firstRetry << min(q.failures[key], 20)
	q.failures[key]++
	q.AddAfter(key, min(wait, lastRetry))
}

func (q *handQueue) Forget(key types.NamespacedName)          { delete(q.failures, key) }
func (q *handQueue) NumRequeues(key types.NamespacedName) int { return q.failures[key] }

// Get returns the chosen key.
func (q *handQueue) Get() (types.NamespacedName, bool) {
	delete(q.ready, q.chosen)
	q.working[q.chosen] = true
	return q.chosen, false
}

func (q *handQueue) Done(key types.NamespacedName) { delete(q.working, key) }

// due returns the keys that are due, in order.
func (q *handQueue) due() []types.NamespacedName {
	for key, at := range q.later {
		if !at.After(q.clock.Now()) {
			delete(q.later, key)
			q.ready[key] = true
		}
	}
	if len(q.ready) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(q.ready), func(a, b types.NamespacedName) int {
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
