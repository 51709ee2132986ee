// SPDX-License-Identifier: Apache-2.0

// Package permits has the permit giver of MCM, whose callers wait for their permits.
package permits

import (
	"sync"
	"time"
)

// PermitGiver grants permits that callers wait for. It is the interface of MCM, for programs
// that use it.
//
// Its permits have no holder. A second release, or one after the key was deleted and registered
// again, frees the permit of another caller. Pair the calls: defer ReleasePermit right after a
// successful TryPermit. Where that is not possible, or where a worker must not wait, use a Ledger of
// github.com/machinist-dev/machinist/permits.
//
// The PermitGiver of [NewPermitGiver] is safe for concurrent use, also during and after Close
// and DeletePermits.
type PermitGiver interface {
	// RegisterPermits makes numPermits permits available under key. Zero or less means none.
	// The number of a known key stays the same, and the key counts as used.
	RegisterPermits(key string, numPermits int)
	// TryPermit takes a permit of the key and reports whether it got one. If all are taken,
	// it waits for a release for at most timeout, in order of arrival. A timeout of zero or
	// less means no wait. It returns false without a wait if the key is unknown or has no
	// permits, and after Close. It returns false when the key is deleted or the giver is
	// closed during the wait.
	TryPermit(key string, timeout time.Duration) bool
	// ReleasePermit returns one permit of the key, to the call that has waited longest. It
	// does nothing if the key is unknown or none of its permits is taken.
	ReleasePermit(key string)
	// DeletePermits removes the key with the permits taken under it. Calls that wait for the
	// key return false. It does nothing if the key is unknown.
	DeletePermits(key string)
	// Close removes all keys. Waiting calls return false. After it, TryPermit returns false
	// and the other methods do nothing. It may be repeated.
	Close()
}

// NewPermitGiver returns a PermitGiver that removes keys which are not in use.
//
// A key without taken permits is unknown again when it was not registered, tried or released for
// longer than stalePermitKeyTimeout. With a timeout of zero or less, only DeletePermits removes
// a key.
//
// There is no background goroutine, and a giver that is dropped without Close leaks nothing.
// Calls of RegisterPermits and TryPermit free the memory of unknown keys, at most once every
// janitorFrequency. Zero or less means once every stalePermitKeyTimeout.
func NewPermitGiver(stalePermitKeyTimeout, janitorFrequency time.Duration) PermitGiver {
	if janitorFrequency <= 0 {
		janitorFrequency = stalePermitKeyTimeout
	}
	return &permitGiver{
		stale:      stalePermitKeyTimeout,
		sweepEvery: janitorFrequency,
		epoch:      time.Now(),
		gates:      map[string]*gate{},
	}
}

type permitGiver struct {
	stale, sweepEvery time.Duration
	epoch             time.Time // with a monotonic reading; all times count from it

	mu    sync.Mutex       // guards everything, so that no gate is dropped while in use
	gates map[string]*gate // nil after Close
	swept time.Duration    // when stale gates were last removed
}

func (g *permitGiver) RegisterPermits(key string, numPermits int) {
	now := time.Since(g.epoch)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates == nil {
		return
	}
	if known := g.find(key, now); known != nil {
		known.touch(now)
		return
	}
	g.gates[key] = &gate{permits: numPermits, used: now}
}

func (g *permitGiver) TryPermit(key string, timeout time.Duration) bool {
	now := time.Since(g.epoch)
	g.mu.Lock()
	gt := g.find(key, now)
	if gt == nil {
		g.mu.Unlock()
		return false
	}
	gt.touch(now)
	granted := gt.enter()
	if granted || timeout <= 0 || gt.permits <= 0 {
		g.mu.Unlock()
		return granted
	}
	turn := gt.queue()
	g.mu.Unlock()
	return g.await(gt, turn, timeout)
}

// await returns the result of a queued call, or gives up after timeout.
func (g *permitGiver) await(gt *gate, turn chan bool, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case granted := <-turn:
		return granted
	case <-timer.C:
		return g.giveUp(gt, turn)
	}
}

// giveUp withdraws a queued call. If the call has a result already, giveUp returns it: a permit
// that was given must not be lost.
func (g *permitGiver) giveUp(gt *gate, turn chan bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gt.leave(turn) {
		return false
	}
	return <-turn
}

func (g *permitGiver) ReleasePermit(key string) {
	now := time.Since(g.epoch)
	g.mu.Lock()
	defer g.mu.Unlock()
	if gt := g.gates[key]; gt != nil && gt.exit() {
		gt.touch(now)
	}
}

func (g *permitGiver) DeletePermits(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gt := g.gates[key]; gt != nil {
		gt.dismiss()
		delete(g.gates, key)
	}
}

func (g *permitGiver) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gt := range g.gates {
		gt.dismiss()
	}
	g.gates = nil
}

// find returns the gate of key, or nil if the key is unknown or stale. It removes stale gates if
// that is due. The caller holds g.mu.
func (g *permitGiver) find(key string, now time.Duration) *gate {
	if g.stale <= 0 {
		return g.gates[key]
	}
	if now-g.swept >= g.sweepEvery {
		g.swept = now
		for k, gt := range g.gates {
			if gt.idle(now) > g.stale {
				delete(g.gates, k)
			}
		}
	}
	gt := g.gates[key]
	if gt != nil && gt.idle(now) > g.stale {
		delete(g.gates, key)
		return nil
	}
	return gt
}
