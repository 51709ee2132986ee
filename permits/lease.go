// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"fmt"
	"time"
)

// A Lease is permission for Holder to be disrupted under Key until Expires.
//
// It is a value: changing one changes nothing in the [Ledger] that granted it.
// The zero Lease permits nothing.
type Lease struct {
	// Key is what is being protected. The empty string is a key like any other.
	Key string `json:"key"`
	// Holder is who is being disrupted. It is never empty in a granted lease.
	Holder string `json:"holder"`
	// Since is when the holder got the lease; renewing does not change it.
	Since time.Time `json:"since"`
	// Expires is the first instant at which the lease does not count any more.
	// Zero means that only a release ends it.
	Expires time.Time `json:"expires,omitzero"`
}

// Live reports whether the lease counts at now. A lease without a holder, such
// as the zero Lease, never does.
func (l Lease) Live(now time.Time) bool {
	return l.Holder != "" && !l.ended(now)
}

// String describes the lease in a few words, for people. The text may change.
func (l Lease) String() string {
	switch {
	case l.Holder == "":
		return "no lease"
	case l.Expires.IsZero():
		return fmt.Sprintf("%q until released", l.Holder)
	}
	return fmt.Sprintf("%q until %s", l.Holder, instant(l.Expires))
}

// ended reports whether the lease is over at now, whoever holds it.
func (l *Lease) ended(now time.Time) bool {
	return !l.Expires.IsZero() && !now.Before(l.Expires)
}

// instant renders a time the same way wherever the program runs.
func instant(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}
