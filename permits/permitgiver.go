// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"sync"
	"time"
)

// A PermitGiver hands out permits that are waited for: the interface of the
// reference system, for programs written against it.
//
// Its permits are anonymous. A release frees one permit of the key, whoever calls
// it: releasing twice, or after the key was deleted and registered anew, frees
// the permit of somebody else. A program has to pair its calls, usually by
// deferring the release right after a successful TryPermit. Where that cannot be
// guaranteed, or where a worker should not wait, use a [Ledger], whose leases have
// a holder.
//
// A PermitGiver made by [NewPermitGiver] is safe for use by multiple goroutines,
// in any order of calls, also during and after Close and DeletePermits.
type PermitGiver interface {
	// RegisterPermits makes numPermits permits available under key; zero or less
	// means none. If the key is known already, the number it has stays as it is,
	// and the key counts as used.
	RegisterPermits(key string, numPermits int)
	// TryPermit takes a permit of the key and reports whether it got one. If all
	// are taken it waits for a release for at most timeout, in order of arrival; a
	// timeout of zero or less means not to wait. It returns false at once if the key
	// is unknown or has no permits at all, or after Close; and as soon as the key is
	// deleted or the giver closed while it waits.
	TryPermit(key string, timeout time.Duration) bool
	// ReleasePermit gives one permit of the key back, to whoever waits the longest.
	// It does nothing if the key is unknown or none of its permits is taken.
	ReleasePermit(key string)
	// DeletePermits forgets the key with the permits taken under it. Whoever waits
	// for one is told false. It does nothing if the key is unknown.
	DeletePermits(key string)
	// Close forgets everything. Whoever waits is told false. From then on TryPermit
	// returns false and the other methods do nothing. It may be called again.
	Close()
}

// NewPermitGiver returns a PermitGiver that forgets keys which are not in use.
//
// A key of which no permit is taken, and which was neither registered nor asked
// for nor released for longer than stalePermitKeyTimeout, counts as unknown from
// then on. With a timeout of zero or less only DeletePermits forgets a key.
//
// There is no background goroutine. The memory of forgotten keys is freed in
// passing, by calls of RegisterPermits and TryPermit, at most once every
// janitorFrequency; zero or less means once every stalePermitKeyTimeout.
// Dropping the giver without Close leaks nothing.
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
	epoch             time.Time // with a monotonic reading; all stamps count from here

	mu    sync.Mutex       // guards everything, so that no gate is dropped while in use
	gates map[string]*gate // nil after Close
	swept time.Duration    // when stale gates were last looked for
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

// await waits for the answer to a queued request, at most for timeout.
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

// giveUp takes back a queued request. If it has been answered in the meantime it
// returns the answer: a permit that was handed over must not get lost.
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

// find returns the gate of key, or nil if it is unknown or stale by now. In
// passing it frees what is stale, if that is due. The caller holds g.mu.
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
