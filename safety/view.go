// SPDX-License-Identifier: Apache-2.0

package safety

import "time"

// A View is a list with its time and completeness. The zero View was never read.
type View[T any] struct {
	// Items in any order. They are read only.
	Items []T
	// AsOf is a time at which the list was correct. For the list that is read first, use the
	// time of the response. For the list that is read afterwards, use the time of the
	// request. A cache that has synced once may be older than that.
	AsOf time.Time
	// Complete reports that no item is missing: all pages and regions were read, without an
	// error. If false, everything that depends on the list is held.
	Complete bool
}
