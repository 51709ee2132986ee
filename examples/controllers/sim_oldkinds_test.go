// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// An API server caches each kind separately, so that the first lists of a process may have different
// ages. A class may have its finalizer while the only object that names the class is missing.

// holdKinds lets the first lists of the next process have a random age for each kind.
func (w *world) holdKinds() {
	now, lasts := w.clock.Now(), time.Duration(1+w.rng.Int64N(int64(time.Minute)))
	for _, resource := range slices.Sorted(maps.Keys(w.control.log)) {
		age := time.Duration(w.rng.Int64N(int64([]time.Duration{time.Second, 10 * time.Second, 2 * time.Minute}[w.rng.IntN(3)])))
		log := w.control.log[resource]
		w.control.held[resource] = len(log)
		if i := slices.IndexFunc(log, func(e entry) bool { return e.shownAt.After(now.Add(-age)) }); i >= 0 {
			w.control.held[resource] = i
		}
		w.logf("the first list of %s has %d of %d entries for %s", resource, w.control.held[resource], len(log), lasts)
	}
	w.control.heldUntil = now.Add(lasts)
	w.recordFault(lasts)
}

// randomOldKinds lets the process crash early in the life of machines or of a rollout, with other random
// faults.
func randomOldKinds(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 33))
	s := scenario{name: "first lists of different ages", joins: true, oldLists: true, machines: 1 + rng.IntN(2), cloud: anyCloud(rng)}
	if rng.IntN(2) == 0 {
		s.machines, s.deployment, s.rollout = 0, true, anyRollout(rng)
	} else if rng.IntN(2) == 0 {
		s.deleteAfter = time.Duration(1 + rng.Int64N(int64(time.Minute)))
	}
	w, further := newWorld(s, rng, nil, verbose), randomFaults(rng)
	at := w.began.Add(time.Duration(rng.Int64N(int64([]time.Duration{time.Second, time.Minute}[rng.IntN(2)]))))
	w.plan = func(a simCall) fault {
		if at.IsZero() || w.clock.Now().Before(at) {
			return further(a)
		}
		if at = (time.Time{}); rng.IntN(2) == 0 {
			at = w.clock.Now().Add(time.Duration(rng.Int64N(int64(time.Minute))))
		}
		w.holdKinds()
		return fault{kind: crashAfter}
	}
	return w.playOn()
}

// TestOldKinds_Schedules checks that no finalizer of a class or Secret is removed because the first list
// of the objects that name it is older than the class or Secret.
func TestOldKinds_Schedules(t *testing.T) {
	t.Parallel()
	playAll(t, "TestOldKinds_Schedules", 400, randomOldKinds)
}
