// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Ledger grants leases, at most a fixed number per key at any time. It is safe for concurrent
// use. It starts no goroutine, needs no Close and reads no clock: each method takes the current
// time. If these times go backwards, leases last longer, and no key has more leases than
// allowed.
//
// Expired leases and keys without leases are removed by later calls, so the size of a Ledger
// follows the number of its leases. The zero Ledger and a nil Ledger grant nothing.
type Ledger struct {
	limit int
	ttl   time.Duration

	mu       sync.Mutex
	accounts map[string]*account
	sweepAt  int // number of accounts at which the empty ones are removed
}

// minSweep is the number of keys below which empty ones are not removed.
const minSweep = 64

// NewLedger returns a Ledger that allows limit leases per key; a limit of zero or less allows
// none. A lease expires ttl after it was last acquired, so ttl has to be longer than the time
// between two renewals. With a ttl of zero or less, leases end by release only.
func NewLedger(limit int, ttl time.Duration) *Ledger {
	return &Ledger{limit: limit, ttl: ttl}
}

// Acquire grants holder a lease under key, or returns why not: exactly one result is set. A
// holder that has a lease renews it: it uses one permit, is never refused, and never expires
// earlier than before.
//
// Callers with the same holder name share one lease. Two attempts on one machine that must
// exclude each other need two names.
func (l *Ledger) Acquire(key, holder string, now time.Time) (Lease, *Refusal) {
	if l == nil {
		return l.AcquireWithin(0, key, holder, now)
	}
	return l.AcquireWithin(l.limit, key, holder, now)
}

// AcquireWithin is [Ledger.Acquire] with the given limit in place of that of the Ledger, for
// this call only. All leases of the key count, under whatever limit they were granted.
func (l *Ledger) AcquireWithin(limit int, key, holder string, now time.Time) (Lease, *Refusal) {
	if l == nil {
		return Lease{}, &Refusal{Key: key, Holder: holder, Reason: nothingAllowed}
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	a := l.account(key, now)
	i, renewal := a.find(holder)
	switch {
	case holder == "":
		return Lease{}, a.refuse(holderMissing, limit, key, holder)
	case renewal:
		return a.renew(i, l.expiry(now)), nil
	case limit <= 0:
		return Lease{}, a.refuse(nothingAllowed, limit, key, holder)
	case a.full(limit):
		return Lease{}, a.refuse(limitReached, limit, key, holder)
	}
	return a.put(i, Lease{Key: key, Holder: holder, Since: now, Expires: l.expiry(now)}), nil
}

// Adopt records that the disruption of seen.Holder under seen.Key is in progress, and returns
// its lease. It ignores the limit. While a key has as many leases as its limit or more, other
// holders are refused. Call it after a restart, for every disruption that is observed, before
// anything is acquired.
//
// The lease expires as if it was acquired now; seen.Expires is ignored. A seen.Since that is
// not zero is kept. Adopting an existing lease renews it. Without a holder, Adopt returns the
// zero Lease.
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

// Release ends the lease of holder under key, and reports whether there was one. There is none
// if it expired; another holder may have a lease since then. Release never ends the lease of
// another holder, and may be repeated.
func (l *Ledger) Release(key, holder string, now time.Time) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	a := l.accounts[key]
	if a == nil {
		return false
	}
	a.prune(now)
	i, held := a.find(holder)
	if held {
		a.take(i)
	}
	return held
}

// Held returns the leases of key that count at now, sorted by holder. It returns nil if there
// are none. Changing the slice does not change the Ledger.
func (l *Ledger) Held(key string, now time.Time) []Lease {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return appendLive(nil, l.accounts[key], now)
}

// Leases returns all leases that count at now, sorted by key and holder. It returns nil if
// there are none. To restore a Ledger after a restart, [Ledger.Adopt] each of them.
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

// account returns the account of key without its expired leases, or a new account. Each time
// the number of accounts has doubled, it removes the empty ones: the work per call is constant
// on average, and at most about half of the accounts are empty. The caller holds l.mu.
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

// expiry returns when a lease that is acquired at now expires. It returns zero if leases do not
// expire, or if the end cannot be represented.
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
