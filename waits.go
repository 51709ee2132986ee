// SPDX-License-Identifier: Apache-2.0

package machinist

import (
	"cmp"
	"slices"
	"time"
)

const (
	// lastsAfter is how long an object has the same hold before the hold lasts.
	lastsAfter = 2 * time.Second
	// stuckAfter is how long an object has the same hold before the hold is stuck.
	stuckAfter = 5 * time.Minute
)

// LastsFrom returns from when the hold lasts, and is worth a write or an Event: two seconds after its Since.
func (h Hold) LastsFrom() time.Time { return h.Since.Add(lastsAfter) }

// StuckFrom returns from when the hold is stuck, if it is one that usually ends by itself: five minutes after
// its Since.
func (h Hold) StuckFrom() time.Time { return h.Since.Add(stuckAfter) }

// Waits are the current holds of one object, and since when it has each of them. Holds with the same
// subject and reason are the same. Waits are a value that a caller keeps for each object; without it
// only the age of the holds is lost. The zero value has no holds.
type Waits struct{ all []wait }

// wait is a hold, and whether it was reported.
type wait struct {
	hold     Hold
	reported bool
}

// Step replaces the holds by those of a new decision. It returns the holds that are reported now, each
// once, and when that will be for the next hold. Zero means for none.
//
// from returns from when a hold is reported, or zero for never. The Since of its argument is not zero.
// Nil means [Hold.StuckFrom].
func (w Waits) Step(holds []Hold, from func(Hold) time.Time, now time.Time) (next Waits, report []Hold, check time.Time) {
	if from == nil {
		from = Hold.StuckFrom
	}
	for _, hold := range holds {
		is := wait{hold: hold}
		same := func(o wait) bool { return o.hold.Subject == hold.Subject && o.hold.Reason == hold.Reason }
		if i := slices.IndexFunc(w.all, same); i >= 0 {
			is.hold.Since, is.reported = w.all[i].hold.Since, w.all[i].reported
		} else if hold.Since.IsZero() || hold.Since.After(now) {
			is.hold.Since = now
		}
		switch at := from(is.hold); {
		case is.reported, at.IsZero():
		case now.Before(at):
			check = Earliest(check, at)
		default:
			is.reported, report = true, append(report, is.hold)
		}
		next.all = slices.DeleteFunc(next.all, same) // the last of several counts
		next.all = append(next.all, is)
	}
	return next, report, check
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
