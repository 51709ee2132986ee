// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	"github.com/machinist-dev/machinist/internal/recorded"
)

// forcedDrain is how long a drain by force may fail before the deletion goes on
// without it; it is that of the reference system.
const forcedDrain = time.Minute

// After returns the view after a round of draining in mode, which was made at now
// and left things as round says: only Done, Holds and NextCheck of it are read. A
// round that failed counts too, as one that is not done: so force comes to its
// end also where the API server of the Node does not answer.
//
// What stays from before is since when the drain has been done, and since when it
// has been forced, unless the drain is another one.
func (v DrainView) After(mode DrainMode, round DrainView, now time.Time) DrainView {
	v = v.of(mode)
	next := DrainView{
		Started: mode.Started, ForceAt: mode.ForceAt, KeepSchedulable: mode.KeepSchedulable,
		Round: now, Done: round.Done, Holds: slices.Clone(round.Holds), NextCheck: round.NextCheck,
		DoneAt: v.DoneAt, ForcedAt: v.ForcedAt,
	}
	if next.Done && !recorded.Known(next.DoneAt, now) {
		next.DoneAt = now
	}
	if !recorded.Known(next.ForcedAt, now) && mode.forced(now) {
		next.ForcedAt = now
	}
	return next
}

// Again returns the view that asks for a new round of the same drain: what a
// caller begins a pass with that makes a round in each, since pods may have
// changed.
func (v DrainView) Again() DrainView {
	return DrainView{
		Started: v.Started, ForceAt: v.ForceAt, KeepSchedulable: v.KeepSchedulable, DoneAt: v.DoneAt, ForcedAt: v.ForcedAt,
	}
}

// Concerns says whether the rounds of the view were made for the drain that mode
// belongs to: not if it began at another time or for another reason, such as an
// update in place, or if the time of force is another since. What whoever makes the
// rounds remembers of a drain counts for no other.
func (v DrainView) Concerns(mode DrainMode) bool {
	return v.Started.IsZero() ||
		v.Started.Equal(mode.Started) && v.ForceAt.Equal(mode.ForceAt) && v.KeepSchedulable == mode.KeepSchedulable
}

// of returns what the view says of the drain that mode belongs to.
func (v DrainView) of(mode DrainMode) DrainView {
	if !v.Concerns(mode) {
		return DrainView{}
	}
	return v
}

// over returns since when nothing is left to wait for, or false if something is:
// a drain is over when it is done, and a minute after it was first made by force.
func (v DrainView) over(mode DrainMode, now time.Time) (time.Time, bool) {
	if v.Done {
		if v.DoneAt.IsZero() {
			return v.Round, true
		}
		return v.DoneAt, true
	}
	end := v.forceEnds(mode, now)
	return end, !end.IsZero() && !now.Before(end)
}

// forceEnds returns when the drain by force is given up, or zero as long as there
// is none.
func (v DrainView) forceEnds(mode DrainMode, now time.Time) time.Time {
	if v.ForcedAt.IsZero() || !mode.forced(now) {
		return time.Time{}
	}
	return v.ForcedAt.Add(forcedDrain)
}

// forced says whether the time of force has come. That a Node is unreachable
// forces its pods, but not the end of the drain.
func (m DrainMode) forced(now time.Time) bool {
	return !m.ForceAt.IsZero() && !now.Before(m.ForceAt)
}
