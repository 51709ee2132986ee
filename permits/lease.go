// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"fmt"
	"time"
)

// Lease permits Holder to be disrupted under Key until Expires. It is a copy: changing it does
// not change the [Ledger]. The zero Lease permits nothing.
type Lease struct {
	// Key is what is protected. The empty string is a valid key.
	Key string `json:"key"`
	// Holder is the machine or Node that is disrupted. It is not empty in a granted lease.
	Holder string `json:"holder"`
	// Since is when the lease was granted. Renewing does not change it.
	Since time.Time `json:"since,omitzero"`
	// Expires is when the lease ends. Zero means that only a release ends it.
	Expires time.Time `json:"expires,omitzero"`
}

// Live reports whether the lease counts at now. A lease without a holder does not.
func (l Lease) Live(now time.Time) bool {
	return l.Holder != "" && !l.ended(now)
}

// String returns the holder and the end of the lease. The text may change.
func (l Lease) String() string {
	switch {
	case l.Holder == "":
		return "no lease"
	case l.Expires.IsZero():
		return fmt.Sprintf("%q until released", l.Holder)
	}
	return fmt.Sprintf("%q until %s", l.Holder, instant(l.Expires))
}

// ended reports whether the lease has expired at now.
func (l *Lease) ended(now time.Time) bool {
	return !l.Expires.IsZero() && !now.Before(l.Expires)
}

// instant returns a time as text in UTC.
func instant(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}
