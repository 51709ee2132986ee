// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"slices"
	"strings"
	"time"
)

// An account is what is held under one key, sorted by holder. The zero account
// is empty. It has no lock; whoever owns it does.
type account struct {
	leases []Lease
}

// prune forgets the leases that are over at now. What was forgotten does not
// come back if time goes backwards; so the number of leases kept is the upper
// bound of those live at any time.
func (a *account) prune(now time.Time) {
	for i := range a.leases {
		if a.leases[i].ended(now) {
			a.leases = slices.DeleteFunc(a.leases, func(l Lease) bool { return l.ended(now) })
			return
		}
	}
}

// full reports whether limit leases or more are held.
func (a *account) full(limit int) bool {
	return len(a.leases) >= limit
}

// find returns the index of holder's lease, or the index where it belongs.
func (a *account) find(holder string) (int, bool) {
	return slices.BinarySearchFunc(a.leases, holder, func(l Lease, name string) int {
		return strings.Compare(l.Holder, name)
	})
}

// put adds a lease at index i, which has to come from find, and returns it.
func (a *account) put(i int, l Lease) Lease {
	a.leases = slices.Insert(a.leases, i, l)
	return l
}

// take removes the lease at index i.
func (a *account) take(i int) {
	a.leases = slices.Delete(a.leases, i, i+1)
}

// renew gives the lease at index i at least until expires, and returns it. A time
// that was promised is never taken back, also if time went backwards since.
func (a *account) renew(i int, expires time.Time) Lease {
	l := &a.leases[i]
	if !l.Expires.IsZero() && (expires.IsZero() || expires.After(l.Expires)) {
		l.Expires = expires
	}
	return *l
}

// refuse explains to holder why there is nothing for it.
func (a *account) refuse(why Reason, limit int, key, holder string) *Refusal {
	r := &Refusal{Key: key, Holder: holder, Reason: why, Limit: limit}
	if len(a.leases) > 0 { // else nil, whether or not the account was used before
		r.Holders = slices.Clone(a.leases)
	}
	if why == LimitReached {
		r.RetryAt = a.freeAt(limit)
	}
	return r
}

// freeAt returns the earliest instant at which fewer than limit leases are left,
// of an account that is full, if nobody releases any; zero if that never happens.
func (a *account) freeAt(limit int) time.Time {
	ends := make([]time.Time, 0, len(a.leases))
	for _, l := range a.leases {
		if !l.Expires.IsZero() {
			ends = append(ends, l.Expires)
		}
	}
	surplus := len(a.leases) - limit // this many have to end, and one more
	if surplus >= len(ends) {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends[surplus]
}
