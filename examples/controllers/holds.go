// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
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

// stuckAfter is how long a machine waits for the same thing until an Event says so.
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

// set replaces the holds of an object. It returns those that have lasted for stuckAfter and were
// not returned before, and when the next one will have, zero if none.
func (h *holds) set(kind string, object cache.ObjectName, now time.Time, all []machinist.Hold) (stuck []machinist.Hold, next time.Time) {
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
		switch end := p.hold.Since.Add(stuckAfter); {
		case p.told:
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
