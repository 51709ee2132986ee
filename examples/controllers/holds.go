// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machineset"
)

// Held is one thing that an object waits for.
type Held struct {
	// Kind is that of the controller, such as "machine", and Object names what waits; it is
	// empty for a controller that decides about all objects together.
	Kind   string
	Object cache.ObjectName
	// Hold is what it waits for. Since is never zero.
	Hold machinist.Hold
}

// stuckAfter is how long an object waits for the same thing until an Event says so.
const stuckAfter = 5 * time.Minute

// holds remembers what each object waits for, and since when. It is safe for several goroutines.
// Losing it costs the age of the holds. A nil tracker remembers nothing.
type holds struct {
	mu sync.Mutex
	of map[heldKey]map[holdKey]*present
}

type heldKey struct {
	kind   string
	object cache.ObjectName
}

// holdKey is what makes two holds of an object the same.
type holdKey struct {
	subject string
	reason  machinist.Reason
}

// present is a hold that an object has now.
type present struct {
	hold machinist.Hold
	told bool
}

// heldSince returns since when a hold, whose Since is not zero, keeps an object from getting on. Zero
// means that it does not: it is what a user has asked for, or it ends by itself at a known time.
type heldSince func(machinist.Hold) time.Time

// set replaces the holds of an object. It returns those that have lasted for stuckAfter and were
// not returned before, and when the next one will have, zero if none. Without from, each counts from Since.
func (h *holds) set(kind string, object cache.ObjectName, now time.Time, all []machinist.Hold, from heldSince) (stuck []machinist.Hold, next time.Time) {
	if h == nil {
		return nil, time.Time{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := heldKey{kind, object}
	before := h.of[key]
	if len(all) == 0 {
		delete(h.of, key)
		return nil, time.Time{}
	}
	after := make(map[holdKey]*present, len(all))
	for _, hold := range all {
		p := &present{hold: hold}
		k := holdKey{hold.Subject, hold.Reason}
		if was := before[k]; was != nil {
			p.told, p.hold.Since = was.told, was.hold.Since
		} else if hold.Since.IsZero() || hold.Since.After(now) {
			p.hold.Since = now
		}
		since := p.hold.Since
		if from != nil {
			since = from(p.hold)
		}
		switch end := since.Add(stuckAfter); {
		case p.told, since.IsZero():
		case now.Before(end):
			next = machinist.Earliest(next, end)
		default:
			p.told = true
			stuck = append(stuck, p.hold)
		}
		after[k] = p
	}
	if h.of == nil {
		h.of = map[heldKey]map[holdKey]*present{}
	}
	h.of[key] = after
	return stuck, next
}

// forget forgets an object that is gone.
func (h *holds) forget(kind string, object cache.ObjectName) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, heldKey{kind, object})
}

// list returns the holds of all objects, in no order.
func (h *holds) list() []Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Held, 0, len(h.of))
	for key, holds := range h.of {
		for _, p := range holds {
			all = append(all, Held{Kind: key.kind, Object: key.object, Hold: p.hold})
		}
	}
	return all
}

// quiet are the reasons of sets and deployments that wait because a user has asked for it, or that
// have an Event and a condition of their own.
var quiet = map[machinist.Reason]bool{
	deployment.ReasonInvalid: true, deployment.ReasonSelectsNothing: true, deployment.ReasonPaused: true, deployment.ReasonFrozen: true,
	machineset.ReasonInvalid: true, machineset.ReasonPreserved: true,
}

// sinceProgress counts the wait of a set or deployment from its last progress: while machines
// come and go, it may wait for the same thing for hours.
func sinceProgress(progress, now time.Time) heldSince {
	return func(h machinist.Hold) time.Time {
		switch {
		case quiet[h.Reason], h.Until.After(now):
			return time.Time{}
		case progress.After(h.Since) && !progress.After(now):
			return progress
		default:
			return h.Since
		}
	}
}

// tellStuck replaces the holds of an object, and reports an Event for each that keeps it from
// getting on for stuckAfter. It returns when to look again, zero for never.
func (c *Config) tellStuck(kind string, o runtime.Object, key cache.ObjectName, all []machinist.Hold, from heldSince) time.Time {
	stuck, next := c.holds.set(kind, key, c.Clock.Now(), all, from)
	for _, h := range stuck {
		if h.Reason == machine.ReasonFrozen { // an Event of each deployment says so
			continue
		}
		message := fmt.Sprintf("has waited for %s since %s: %s", h.Subject, h.Since.UTC().Format(time.RFC3339), h.Message)
		c.event(o, machinist.Event{Type: corev1.EventTypeNormal, Reason: h.Reason, Message: message})
	}
	return next
}
