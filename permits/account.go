// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
)

// account has the leases of one key, sorted by holder. Its owner has the lock.
type account struct {
	leases []Lease
}

// prune removes the leases that have expired at now. They do not return if time goes
// backwards, so the number of leases is an upper bound at any time.
func (a *account) prune(now time.Time) {
	for i := range a.leases {
		if a.leases[i].ended(now) {
			a.leases = slices.DeleteFunc(a.leases, func(l Lease) bool { return l.ended(now) })
			return
		}
	}
}

// full reports whether the account has limit leases or more.
func (a *account) full(limit int) bool {
	return len(a.leases) >= limit
}

// find returns the index of the lease of holder, and whether there is one. Without one it
// returns the index to insert it at.
func (a *account) find(holder string) (int, bool) {
	return slices.BinarySearchFunc(a.leases, holder, func(l Lease, name string) int {
		return strings.Compare(l.Holder, name)
	})
}

// put inserts a lease at an index that find returned, and returns the lease.
func (a *account) put(i int, l Lease) Lease {
	a.leases = slices.Insert(a.leases, i, l)
	return l
}

// take removes the lease at index i.
func (a *account) take(i int) {
	a.leases = slices.Delete(a.leases, i, i+1)
}

// renew extends the lease at index i until expires, and returns it. It never shortens it, even
// if time went backwards.
func (a *account) renew(i int, expires time.Time) Lease {
	l := &a.leases[i]
	if !l.Expires.IsZero() && (expires.IsZero() || expires.After(l.Expires)) {
		l.Expires = expires
	}
	return *l
}

// refuse returns the refusal of a call.
func (a *account) refuse(why machinist.Reason, limit int, key, holder string) *Refusal {
	r := &Refusal{Key: key, Holder: holder, Reason: why, Limit: limit}
	if len(a.leases) > 0 { // else nil, also if the account had leases before
		r.Holders = slices.Clone(a.leases)
	}
	if why == limitReached {
		r.RetryAt = a.freeAt(limit)
	}
	return r
}

// freeAt returns when a full account has fewer than limit leases if none is released. It
// returns zero if that never happens.
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
