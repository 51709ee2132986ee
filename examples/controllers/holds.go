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

// Held is a hold of an object.
type Held struct {
	// Kind is the kind of the controller, such as "machine". Object is the object that waits. It is
	// empty for a controller that decides about all objects together.
	Kind   string
	Object cache.ObjectName
	// Hold says what the object waits for. Since is never zero.
	Hold machinist.Hold
}

// stuckAfter is how long an object has the same hold before it gets an Event.
const stuckAfter = 5 * time.Minute

// holds tracks the holds of each object and their begin. A restart loses only the age of the holds.
// It is safe for several goroutines. A nil tracker tracks nothing.
type holds struct {
	mu sync.Mutex
	of map[heldKey]map[holdKey]*present
}

type heldKey struct {
	kind   string
	object cache.ObjectName
}

// holdKey identifies a hold of an object across decisions.
type holdKey struct {
	subject string
	reason  machinist.Reason
}

// present is a current hold of an object.
type present struct {
	hold     machinist.Hold
	reported bool
}

// heldSince returns the time from which the age of a hold counts. Zero means that the hold is never
// stuck, because a user requested it or it ends at a known time.
type heldSince func(machinist.Hold) time.Time

// set replaces the holds of an object. It returns the holds that have become stuck, each once, and
// the time when the next hold becomes stuck. A zero time means none. Without from, the age counts
// from Since.
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
			p.reported, p.hold.Since = was.reported, was.hold.Since
		} else if hold.Since.IsZero() || hold.Since.After(now) {
			p.hold.Since = now
		}
		since := p.hold.Since
		if from != nil {
			since = from(p.hold)
		}
		switch end := since.Add(stuckAfter); {
		case p.reported, since.IsZero():
		case now.Before(end):
			next = machinist.Earliest(next, end)
		default:
			p.reported = true
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

// forget removes the holds of a deleted object.
func (h *holds) forget(kind string, object cache.ObjectName) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, heldKey{kind, object})
}

// list returns the holds of all objects in no order.
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

// notStuck are the reasons of sets and deployments that are never stuck: a user requested the wait,
// or the reason has an Event and a condition of its own.
var notStuck = map[machinist.Reason]bool{
	deployment.ReasonInvalid: true, deployment.ReasonSelectsNothing: true, deployment.ReasonPaused: true, deployment.ReasonFrozen: true,
	machineset.ReasonInvalid: true, machineset.ReasonPreserved: true,
}

// sinceProgress returns a heldSince that counts from the last progress of a set or deployment.
// During a long rollout, the same hold may last for hours.
func sinceProgress(progress, now time.Time) heldSince {
	return func(h machinist.Hold) time.Time {
		switch {
		case notStuck[h.Reason], h.Until.After(now):
			return time.Time{}
		case progress.After(h.Since) && !progress.After(now):
			return progress
		default:
			return h.Since
		}
	}
}

// reportStuck replaces the holds of an object, and records an Event for each hold that has become
// stuck. It returns the time of the next check. Zero means none.
func (c *Config) reportStuck(kind string, o runtime.Object, key cache.ObjectName, all []machinist.Hold, from heldSince) time.Time {
	stuck, next := c.holds.set(kind, key, c.Clock.Now(), all, from)
	for _, h := range stuck {
		if h.Reason == machine.ReasonFrozen { // each deployment has an Event of its own
			continue
		}
		message := fmt.Sprintf("has waited for %s since %s: %s", h.Subject, h.Since.UTC().Format(time.RFC3339), h.Message)
		c.event(o, machinist.Event{Type: corev1.EventTypeNormal, Reason: h.Reason, Message: message})
	}
	return next
}
