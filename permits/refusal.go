// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"fmt"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
)

// Reasons of a [Refusal].
const (
	// limitReached means that other holders have as many leases as are allowed, or more.
	//
	// What helps: a lease has to be released or to expire.
	limitReached machinist.Reason = "LimitReached"
	// nothingAllowed means that the limit is zero or negative.
	//
	// What helps: set a higher limit.
	nothingAllowed machinist.Reason = "NothingAllowed"
	// holderMissing means that the name of the holder is empty.
	//
	// What helps: pass the UID of the holder.
	holderMissing machinist.Reason = "HolderMissing"
	// outsideWindow means that the window of the policy is closed.
	//
	// What helps: wait until the window opens.
	outsideWindow machinist.Reason = "OutsideWindow"
	// holdersUnknown means that a stored ledger is new or was restored. Permits may be held that it
	// does not show.
	//
	// What helps: wait until these permits have ended.
	holdersUnknown machinist.Reason = "HoldersUnknown"
)

// Refusal is why a permit was not granted, which leases hold the permits, and when to acquire
// again. Changing it does not change the [Ledger].
type Refusal struct {
	// Key is that of the refused call.
	Key string `json:"key"`
	// Holder is that of the refused call.
	Holder string `json:"holder"`
	// Reason is why the permit was refused.
	Reason machinist.Reason `json:"reason"`
	// Limit is how many leases the key may have.
	Limit int `json:"limit"`
	// Holders are the leases of the key, sorted by holder. They are more than Limit after
	// [Ledger.Adopt], or if the limit was lowered.
	Holders []Lease `json:"holders,omitempty"`
	// RetryAt is when enough leases have expired for a permit to be free, or when a [Stored]
	// ledger grants permits again. Zero means that only a release or another limit helps.
	RetryAt time.Time `json:"retryAt,omitzero"`
}

// maxNamed is how many holders the text of a Refusal names.
const maxNamed = 3

// String returns the refusal in one line, with at most three holders. The text may change. A
// nil Refusal is "granted".
func (r *Refusal) String() string {
	switch {
	case r == nil:
		return "granted"
	case r.Reason == holderMissing:
		return fmt.Sprintf("no permit under %q: the holder has no name", r.Key)
	case r.Reason == nothingAllowed:
		return fmt.Sprintf("no permit for %q under %q: the limit is %d", r.Holder, r.Key, r.Limit)
	case r.Reason == outsideWindow:
		return fmt.Sprintf("no permit for %q under %q: the window opens at %s", r.Holder, r.Key, instant(r.RetryAt))
	case r.Reason == holdersUnknown:
		return fmt.Sprintf("no permit for %q under %q: the ledger is new or was restored, and may lack holders until %s", r.Holder, r.Key, instant(r.RetryAt))
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
