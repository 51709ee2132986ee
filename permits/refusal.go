// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"fmt"
	"strings"
	"time"
)

// A Reason says in one word why a permit was refused. Reasons are stable: they
// may be used in conditions and metric labels.
type Reason string

const (
	// LimitReached means that as many leases as allowed, or more, are held by others.
	LimitReached Reason = "LimitReached"
	// NothingAllowed means that the limit is zero or negative. Neither waiting nor a release
	// helps, only another limit.
	NothingAllowed Reason = "NothingAllowed"
	// HolderMissing means that the holder's name is empty. Two callers who do not know their
	// names would otherwise share one permit.
	HolderMissing Reason = "HolderMissing"
)

// A Refusal says why a permit was not granted, who has the permits, and when to
// ask again. It is the caller's own: nothing in it is shared with the [Ledger].
type Refusal struct {
	// Key and Holder are what was asked for.
	Key, Holder string
	// Reason is why it was refused.
	Reason Reason
	// Limit is the number of leases that were allowed under the key.
	Limit int
	// Holders are the leases that counted under the key, sorted by holder. There
	// can be more than Limit, after [Ledger.Adopt] or with a smaller limit than
	// before.
	Holders []Lease
	// RetryAt is the earliest instant at which a permit becomes free by itself,
	// always after the time of asking. It is zero if waiting does not help, because
	// leases end by release only, or because of the Reason.
	RetryAt time.Time
}

// maxNamed is how many holders a Refusal names in its text.
const maxNamed = 3

// String describes the refusal in one line, for people. The text may change. It
// names a few of the holders if there are many. A nil Refusal reads "granted".
func (r *Refusal) String() string {
	switch {
	case r == nil:
		return "granted"
	case r.Reason == HolderMissing:
		return fmt.Sprintf("no permit under %q: the holder has no name", r.Key)
	case r.Reason == NothingAllowed:
		return fmt.Sprintf("no permit for %q under %q: the limit is %d", r.Holder, r.Key, r.Limit)
	}
	named := make([]string, 0, maxNamed)
	for _, h := range r.Holders[:min(len(r.Holders), maxNamed)] {
		named = append(named, h.String())
	}
	by := strings.Join(named, ", ")
	if more := len(r.Holders) - maxNamed; more > 0 {
		by += fmt.Sprintf(" and %d more", more)
	}
	retry := "after a release"
	if !r.RetryAt.IsZero() {
		retry = "at " + instant(r.RetryAt)
	}
	return fmt.Sprintf("no permit for %q under %q: %d held, limit %d (%s); ask again %s",
		r.Holder, r.Key, len(r.Holders), r.Limit, by, retry)
}
