// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"container/heap"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// An event is a future change, of a machine if it has a name.
type event struct {
	at   time.Time
	turn int // of several at one time
	name string
	uid  types.UID
	what func(w *World, name string)
	vain bool // it may be repeated for ever and change nothing
}

// events is a heap, ordered by time and then by creation.
type events struct {
	list []event
	turn int
}

// Len implements [heap.Interface].
func (e *events) Len() int { return len(e.list) }

func (e *events) Less(i, j int) bool {
	if c := e.list[i].at.Compare(e.list[j].at); c != 0 {
		return c < 0
	}
	return e.list[i].turn < e.list[j].turn
}

func (e *events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }

func (e *events) Push(x any) {
	if next, ok := x.(event); ok {
		e.turn++
		next.turn = e.turn
		e.list = append(e.list, next)
	}
}

func (e *events) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

// pending reports whether there are events except vain attempts.
func (e *events) pending() bool {
	return slices.ContainsFunc(e.list, func(e event) bool { return !e.vain })
}

// after schedules a change of a machine, if it still exists then.
func (w *World) after(d time.Duration, name string, uid types.UID, what func(w *World, name string)) {
	heap.Push(&w.events, event{at: w.now.Add(max(0, d)), name: name, uid: uid, what: what})
}

// happen applies all changes that are due, and reports whether there were any.
func (w *World) happen() bool {
	something := false
	for len(w.events.list) > 0 && !w.events.list[0].at.After(w.now) {
		e, ok := heap.Pop(&w.events).(event)
		if m := w.Machine(e.name); ok && (e.name == "" || m != nil && m.UID == e.uid) {
			e.what(w, e.name)
			something = true
		}
	}
	return something
}
