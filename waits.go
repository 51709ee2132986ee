// SPDX-License-Identifier: Apache-2.0

package machinist

import (
	"cmp"
	"slices"
	"time"
)

// stuckAfter is how long an object has the same hold before the hold is stuck.
const stuckAfter = 5 * time.Minute

// Waits are the current holds of one object, and since when it has each of them. Holds with the same
// subject and reason are the same. Waits are a value that a caller keeps for each object; without it
// only the age of the holds is lost. The zero value has no holds.
type Waits struct{ all []wait }

// wait is a hold, and whether it was returned as stuck.
type wait struct {
	hold  Hold
	stuck bool
}

// Step replaces the holds by those of a new decision. It returns the holds that have lasted for 5 minutes,
// each once, and when the next hold will. Zero means that none will.
//
// since returns the time from which the age of a hold counts, or zero for a hold that may last. A nil
// since means the Since of the hold, which is never zero in its argument.
func (w Waits) Step(holds []Hold, since func(Hold) time.Time, now time.Time) (next Waits, stuck []Hold, check time.Time) {
	for _, hold := range holds {
		is := wait{hold: hold}
		same := func(o wait) bool { return o.hold.Subject == hold.Subject && o.hold.Reason == hold.Reason }
		if i := slices.IndexFunc(w.all, same); i >= 0 {
			is.hold.Since, is.stuck = w.all[i].hold.Since, w.all[i].stuck
		} else if hold.Since.IsZero() || hold.Since.After(now) {
			is.hold.Since = now
		}
		begin := is.hold.Since
		if since != nil {
			begin = since(is.hold)
		}
		switch end := begin.Add(stuckAfter); {
		case is.stuck, begin.IsZero():
		case now.Before(end):
			check = Earliest(check, end)
		default:
			is.stuck, stuck = true, append(stuck, is.hold)
		}
		next.all = slices.DeleteFunc(next.all, same) // the last of several counts
		next.all = append(next.all, is)
	}
	return next, stuck, check
}

// Holds returns the holds of the last decision, sorted by subject and reason. Since is never zero.
func (w Waits) Holds() []Hold {
	holds := make([]Hold, len(w.all))
	for i := range w.all {
		holds[i] = w.all[i].hold
	}
	slices.SortFunc(holds, func(a, b Hold) int { return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Reason, b.Reason)) })
	return holds
}
