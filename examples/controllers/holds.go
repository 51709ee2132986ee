// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
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
	Object types.NamespacedName
	// Hold says what the object waits for. Since is never zero.
	Hold machinist.Hold
}

// holds has the holds of each object. The zero value is empty. It is safe for several goroutines.
type holds struct {
	mu sync.Mutex
	of map[heldKey]heldNow
}

type heldKey struct {
	kind   string
	object types.NamespacedName
}

// heldNow are the holds of an object, and when the next of them is stuck.
type heldNow struct {
	waits machinist.Waits
	check time.Time
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

// hold replaces the holds of an object. It returns those that are reported now: see [machinist.Waits.Step].
func (l *loop) hold(key types.NamespacedName, all []machinist.Hold, from func(machinist.Hold) time.Time) (stuck []machinist.Hold) {
	h, of := l.cfg.holds, heldKey{l.kind, key}
	h.mu.Lock()
	defer h.mu.Unlock()
	next := heldNow{}
	next.waits, stuck, next.check = h.of[of].waits.Step(all, from, l.cfg.Clock.Now())
	if h.of == nil {
		h.of = map[heldKey]heldNow{}
	}
	if h.of[of] = next; len(all) == 0 {
		delete(h.of, of)
	}
	return stuck
}

// forget removes the holds of a deleted object.
func (l *loop) forget(key types.NamespacedName) { l.hold(key, nil, nil) }

// withHolds returns the pass over an object that is also made when a hold becomes stuck.
func (l *loop) withHolds(pass reconcile) reconcile {
	return func(ctx context.Context, key types.NamespacedName) (time.Time, error) {
		next, err := pass(ctx, key)
		l.cfg.holds.mu.Lock()
		defer l.cfg.holds.mu.Unlock()
		return machinist.Earliest(next, l.cfg.holds.of[heldKey{l.kind, key}].check), err
	}
}

// note is a decision, for [Config.Observe].
type note struct {
	text   string
	reason machinist.Reason
	holds  []machinist.Hold
	acts   bool
}

// tell passes a decision to Config.Observe.
func (l *loop) tell(key types.NamespacedName, n note) {
	l.cfg.note(Note{Kind: l.kind, Key: cache.ObjectName(key).String(), Text: n.text, Reason: n.reason, Holds: n.holds, Acts: n.acts, Waits: len(n.holds) > 0})
}

// decided passes a decision about an object on, and records an Event for each hold that is reported now.
func (l *loop) decided(key types.NamespacedName, o runtime.Object, n note, from func(machinist.Hold) time.Time) {
	l.tell(key, n)
	for _, h := range l.hold(key, n.holds, from) {
		if h.Reason == machine.ReasonFrozen { // each deployment has an Event of its own
			continue
		}
		l.cfg.event(o, machinist.Event{Type: corev1.EventTypeNormal, Reason: h.Reason, Message: "Waits for " + h.String()})
	}
}
