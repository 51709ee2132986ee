// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Ledger hands out leases, at most a fixed number per key at any time.
//
// A Ledger is safe for use by multiple goroutines. It starts no goroutine, needs
// no Close, and never reads the clock: every method takes the current time. What
// it promises does not depend on these times being in order: if they go
// backwards, leases last longer, and never are there more than allowed.
//
// Leases that are over, and keys without leases, are forgotten in passing, so
// that a Ledger is never much larger than what is held in it.
//
// The zero Ledger, and a nil one, grant nothing.
type Ledger struct {
	limit int
	ttl   time.Duration

	mu       sync.Mutex
	accounts map[string]*account
	sweepAt  int // number of accounts at which the empty ones are looked for
}

// minSweep is the number of keys below which nobody looks for empty ones.
const minSweep = 64

// NewLedger returns a Ledger that allows limit leases per key; a limit of zero or
// less allows none. A lease that is neither renewed nor released ends ttl after
// it was last acquired: ttl has to be longer than the pause between two renewals,
// not than the disruption. With a ttl of zero or less, leases end by release only,
// and a holder that disappears blocks its permit until somebody releases it.
func NewLedger(limit int, ttl time.Duration) *Ledger {
	return &Ledger{limit: limit, ttl: ttl}
}

// Acquire grants holder a lease under key, or says why not: exactly one of the
// results is set. A holder that has a lease already has it renewed, which never
// uses a second permit, and is never refused; its end never moves to an earlier
// time.
//
// A holder is its name. If two attempts on the same machine must not take each
// other's lease for their own, the name has to tell them apart.
func (l *Ledger) Acquire(key, holder string, now time.Time) (Lease, *Refusal) {
	if l == nil {
		return l.AcquireWithin(0, key, holder, now)
	}
	return l.AcquireWithin(l.limit, key, holder, now)
}

// AcquireWithin is [Ledger.Acquire] with a limit of its own instead of the
// Ledger's: for keys of different sizes, and for limits that follow from what is
// observed. The Ledger does not remember it; leases that are held already, under
// whatever limit, count.
func (l *Ledger) AcquireWithin(limit int, key, holder string, now time.Time) (Lease, *Refusal) {
	if l == nil {
		return Lease{}, &Refusal{Key: key, Holder: holder, Reason: NothingAllowed}
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	a := l.account(key, now)
	i, renewal := a.find(holder)
	switch {
	case holder == "":
		return Lease{}, a.refuse(HolderMissing, limit, key, holder)
	case renewal:
		return a.renew(i, l.expiry(now)), nil
	case limit <= 0:
		return Lease{}, a.refuse(NothingAllowed, limit, key, holder)
	case a.full(limit):
		return Lease{}, a.refuse(LimitReached, limit, key, holder)
	}
	return a.put(i, Lease{Key: key, Holder: holder, Since: now, Expires: l.expiry(now)}), nil
}

// Adopt records that seen.Holder is being disrupted under seen.Key already,
// whoever allowed it, and returns its lease. It does not ask for the limit: what is
// in progress counts, and as long as it exceeds the limit nothing is granted to
// others. Call it after a restart, once for every disruption that is seen, before
// anything is acquired.
//
// The lease ends as if it had been acquired now; seen.Expires is not looked at.
// seen.Since is kept if it is set. Adopting a lease that exists renews it. A holder
// without a name cannot be adopted; the lease returned is then zero.
func (l *Ledger) Adopt(seen Lease, now time.Time) Lease {
	if l == nil || seen.Holder == "" {
		return Lease{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	a := l.account(seen.Key, now)
	i, renewal := a.find(seen.Holder)
	if renewal {
		return a.renew(i, l.expiry(now))
	}
	if seen.Since.IsZero() {
		seen.Since = now
	}
	seen.Expires = l.expiry(now)
	return a.put(i, seen)
}

// An Outcome says what a release did.
type Outcome string

const (
	// Released means that the holder had a lease, which has ended now.
	Released Outcome = "Released"
	// NotHeld means that the holder had no lease, and nothing has changed. It never had one,
	// or has released it before, or the lease expired, in which case others may
	// have been let in while the holder still believed to be alone.
	NotHeld Outcome = "NotHeld"
)

// Release ends holder's lease under key, and says whether there was one to end.
// It never affects the lease of anybody else, and may be repeated.
func (l *Ledger) Release(key, holder string, now time.Time) Outcome {
	if l == nil {
		return NotHeld
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	a := l.accounts[key]
	if a == nil {
		return NotHeld
	}
	a.prune(now)
	i, held := a.find(holder)
	if !held {
		return NotHeld
	}
	a.take(i)
	return Released
}

// Held returns the leases under key that count at now, sorted by holder. The
// slice belongs to the caller; it is nil if there are none.
func (l *Ledger) Held(key string, now time.Time) []Lease {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return appendLive(nil, l.accounts[key], now)
}

// Leases returns everything that counts at now, sorted by key and holder. The
// slice belongs to the caller; it is nil if there is nothing. To continue from
// such a list after a restart, [Ledger.Adopt] each.
func (l *Ledger) Leases(now time.Time) []Lease {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	var all []Lease
	for _, a := range l.accounts {
		all = appendLive(all, a, now)
	}
	slices.SortFunc(all, func(x, y Lease) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Holder, y.Holder))
	})
	return all
}

// account returns the account of key, without what is over at now; a new one if
// there is none. Every time the number of accounts has doubled, it drops the
// empty ones first, so that the work per call is constant on average and the size
// at most about twice that of what is live. The caller holds l.mu.
func (l *Ledger) account(key string, now time.Time) *account {
	if a := l.accounts[key]; a != nil {
		a.prune(now)
		return a
	}
	if l.accounts == nil {
		l.accounts = map[string]*account{}
	}
	if len(l.accounts) >= max(l.sweepAt, minSweep) {
		maps.DeleteFunc(l.accounts, func(_ string, a *account) bool {
			a.prune(now)
			return len(a.leases) == 0
		})
		l.sweepAt = 2 * len(l.accounts)
	}
	a := &account{}
	l.accounts[key] = a
	return a
}

// expiry returns when a lease acquired at now ends; zero for never. Never is also
// the answer at the end of what a time can hold, where adding stops to work.
func (l *Ledger) expiry(now time.Time) time.Time {
	if l.ttl <= 0 {
		return time.Time{}
	}
	if end := now.Add(l.ttl); end.After(now) {
		return end
	}
	return time.Time{}
}

func appendLive(to []Lease, a *account, now time.Time) []Lease {
	if a == nil {
		return to
	}
	for _, lease := range a.leases {
		if lease.Live(now) {
			to = append(to, lease)
		}
	}
	return to
}
