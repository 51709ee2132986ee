// SPDX-License-Identifier: Apache-2.0

package safety

import "time"

// A View is a list with the evidence of what it is a list of. The zero View
// proves nothing: nobody has looked.
type View[T any] struct {
	// Items in any order. They are read only.
	Items []T
	// AsOf is an instant from which on the list is no older. What is listed first
	// carries the time at which its answer had come, and what is listed
	// afterwards the time at which it was asked for; so "after" can be compared. A
	// cache may be used only if it is known to have caught up with that instant;
	// that it was filled once is no such knowledge.
	AsOf time.Time
	// Complete says that nothing which belongs into the list is missing: no page,
	// no region, no error. False holds whatever depends on the list.
	Complete bool
}
