// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"cmp"
	"slices"
	"time"
)

// Window is when permits are granted: from a time of day on, for a while, on some days of the week.
// The zero Window is always open.
type Window struct {
	// Days are the days on which the window opens. Empty means every day.
	Days []time.Weekday
	// Start is the time of day by the clocks of Location, as the time since midnight. A time that
	// clocks skip opens the window when they are set forward. A time that clocks repeat opens it
	// the first time.
	Start time.Duration
	// Length is how long the window stays open, also over midnight. It is elapsed time. Only the
	// zero Window has none.
	Length time.Duration
	// Location is the time zone of Days and Start. Nil means UTC.
	Location *time.Location
}

// Opens returns now if the window is open, and otherwise when it opens next. The result is zero for
// a window that never opens: one with a Start that is no time of day, a Day that is no day of the
// week, or without Length.
func (w Window) Opens(now time.Time) time.Time {
	location := cmp.Or(w.Location, time.UTC)
	year, month, today := now.In(location).Date()
	switch {
	case len(w.Days) == 0 && w.Start == 0 && w.Length == 0:
		return now
	case w.Start < 0 || w.Start >= 24*time.Hour || w.Length <= 0:
		return time.Time{}
	}
	for date := today - 8; date <= today+8; date++ { // a week, and a day that the zone may skip
		midnight := time.Date(year, month, date, 0, 0, 0, 0, time.UTC)
		switch start := instantOf(midnight.Add(w.Start), location); {
		case len(w.Days) > 0 && !slices.Contains(w.Days, midnight.Weekday()):
		case start.After(now):
			return start
		case now.Sub(start) < w.Length:
			return now
		}
	}
	return time.Time{}
}

// instantOf returns the first instant at which the clocks of a location show a time, which is given
// in UTC. If they skip that time, it returns the instant at which they are set forward.
func instantOf(shown time.Time, location *time.Location) time.Time {
	_, before := shown.Add(-24 * time.Hour).In(location).Zone() // no change is longer than a day
	first := shown.Add(-time.Duration(before) * time.Second).In(location)
	change, _ := first.ZoneBounds()
	_, after := first.Zone()
	if instant := shown.Add(-time.Duration(after) * time.Second).In(location); instant.After(change) {
		return instant
	}
	return change
}
