// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import "time"

// At has something happen at a time, before the controllers decide then: a change
// by a user, or by whoever else is not part of the model. A time that has passed
// means now. Several at one time happen in the order in which they were given. The
// world does not come to rest before. A nil function does nothing.
func (w *World) At(t time.Time, what func(*World)) {
	if what != nil {
		w.after(t.Sub(w.now), "", "", func(w *World, _ string) { what(w) })
	}
}
