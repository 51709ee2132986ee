// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
)

// Held is a hold of an object.
type Held struct {
	// Kind is the kind of the controller, such as "machine". Object is the object that waits. It is
	// empty for a controller that decides about all objects together.
	Kind   string
	Object cache.ObjectName
	// Hold says what the object waits for. Since is never zero.
	Hold machinist.Hold
}

// holds has the holds of each object. It is safe for several goroutines. A nil tracker tracks nothing.
type holds struct {
	mu sync.Mutex
	of map[heldKey]heldNow
}

type heldKey struct {
	kind   string
	object cache.ObjectName
}

// heldNow are the holds of an object, and when the next of them is stuck.
type heldNow struct {
	waits machinist.Waits
	check time.Time
}

// set replaces the holds of an object. It returns the holds that have become stuck: see
// [machinist.Waits.Step].
func (h *holds) set(kind string, object cache.ObjectName, now time.Time, all []machinist.Hold, since func(machinist.Hold) time.Time) (stuck []machinist.Hold) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := heldKey{kind, object}
	next := heldNow{}
	next.waits, stuck, next.check = h.of[key].waits.Step(all, since, now)
	if h.of == nil {
		h.of = map[heldKey]heldNow{}
	}
	if h.of[key] = next; len(all) == 0 {
		delete(h.of, key)
	}
	return stuck
}

// check returns when the next hold of an object becomes stuck. Zero means that none does.
func (h *holds) check(kind string, object cache.ObjectName) time.Time {
	if h == nil {
		return time.Time{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[heldKey{kind, object}].check
}

// forget removes the holds of a deleted object.
func (h *holds) forget(kind string, object cache.ObjectName) {
	h.set(kind, object, time.Time{}, nil, nil)
}

// list returns the holds of all objects in no order.
func (h *holds) list() (all []Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, held := range h.of {
		for _, hold := range held.waits.Holds() {
			all = append(all, Held{Kind: key.kind, Object: key.object, Hold: hold})
		}
	}
	return all
}

// note is a decision, for [Config.Observe].
type note struct {
	text   string
	reason machinist.Reason
	holds  []machinist.Hold
	acts   bool
}

// tell passes a decision to Config.Observe.
func (l *loop) tell(key cache.ObjectName, n note) {
	l.cfg.note(Note{Kind: l.kind, Key: key.String(), Text: n.text, Reason: n.reason, Holds: n.holds, Acts: n.acts, Waits: len(n.holds) > 0})
}

// decided passes a decision on, and reports its holds that have become stuck.
func (l *loop) decided(key cache.ObjectName, o runtime.Object, n note, since func(machinist.Hold) time.Time) {
	l.tell(key, n)
	l.reportStuck(o, key, n.holds, since)
}

// reportStuck replaces the holds of an object, and records an Event for each hold that has become stuck.
func (l *loop) reportStuck(o runtime.Object, key cache.ObjectName, all []machinist.Hold, since func(machinist.Hold) time.Time) {
	for _, h := range l.cfg.holds.set(l.kind, key, l.cfg.Clock.Now(), all, since) {
		if h.Reason == machine.ReasonFrozen { // each deployment has an Event of its own
			continue
		}
		message := fmt.Sprintf("has waited for %s since %s: %s", h.Subject, h.Since.UTC().Format(time.RFC3339), h.Message)
		l.cfg.event(o, machinist.Event{Type: corev1.EventTypeNormal, Reason: h.Reason, Message: message})
	}
}

// withHolds returns the pass over an object that is also made when a hold becomes stuck.
func (l *loop) withHolds(pass func(ctx context.Context, key types.NamespacedName) (time.Time, error)) reconcile {
	return func(ctx context.Context, key cache.ObjectName) (time.Time, error) {
		next, err := pass(ctx, types.NamespacedName(key))
		return machinist.Earliest(next, l.cfg.holds.check(l.kind, key)), err
	}
}

// after enqueues an object after a time.
func (l *loop) after(key types.NamespacedName, wait time.Duration) {
	l.queue.AddAfter(cache.ObjectName(key), wait)
}
