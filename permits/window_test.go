// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

// zone returns a time zone.
func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

// when parses a time with its offset.
func when(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04Z07:00", text)
	require.NoError(t, err)
	return at
}

var weekdays = []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}

func TestWindow_Opens_NowOrNext(t *testing.T) {
	berlin, apia := zone(t, "Europe/Berlin"), zone(t, "Pacific/Apia")
	nights := permits.Window{Days: weekdays, Start: 22 * time.Hour, Length: 6 * time.Hour, Location: berlin}
	gap := permits.Window{Start: 150 * time.Minute, Length: time.Hour, Location: berlin} // 02:30
	friday := permits.Window{Days: []time.Weekday{time.Friday}, Start: 10 * time.Hour, Length: time.Hour, Location: apia}
	for name, c := range map[string]struct {
		window    permits.Window
		now, want string
	}{
		"always":                           {permits.Window{}, "2026-01-01T12:00Z", "2026-01-01T12:00Z"},
		"a zone alone closes nothing":      {permits.Window{Location: berlin}, "2026-01-01T12:00Z", "2026-01-01T12:00Z"},
		"nil is UTC":                       {permits.Window{Start: time.Hour, Length: time.Hour}, "2026-01-01T00:59Z", "2026-01-01T01:00Z"},
		"after midnight":                   {nights, "2026-01-06T03:59+01:00", "2026-01-06T03:59+01:00"},
		"Saturday, of the night of Friday": {nights, "2026-01-10T01:00+01:00", "2026-01-10T01:00+01:00"},
		"the weekend":                      {nights, "2026-01-10T04:00+01:00", "2026-01-12T22:00+01:00"},
		"skipped: opens at the change":     {gap, "2026-03-29T00:00+01:00", "2026-03-29T03:00+02:00"},
		"repeated: opens the first time":   {gap, "2026-10-25T02:00+02:00", "2026-10-25T02:30+02:00"},
		"repeated: once":                   {gap, "2026-10-25T02:30+01:00", "2026-10-26T02:30+01:00"},
		"a day is skipped":                 {friday, "2011-12-29T23:00-10:00", "2011-12-31T00:00+14:00"},
		"longer than a week is always":     {permits.Window{Days: weekdays[:1], Length: 1000 * time.Hour}, "2026-01-11T23:59Z", "2026-01-11T23:59Z"},
		"a zone where it is another day":   {permits.Window{Days: weekdays[:1], Length: time.Hour, Location: apia}, "2026-01-04T11:30Z", "2026-01-04T11:30Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.window.Opens(when(t, c.now))
			require.True(t, got.Equal(when(t, c.want)), "opens at %v, want %v", got, c.want)
		})
	}
}

// TestWindow_Opens_AgreesWithClocks compares windows with a search: it finds the instants at which the
// clocks of the zone show the start, or jump over it, minute by minute.
func TestWindow_Opens_AgreesWithClocks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	changes := map[string]string{
		"Europe/Berlin": "2026-03-29T00:00Z", "America/New_York": "2026-11-01T05:00Z", "Australia/Lord_Howe": "2026-04-04T15:00Z",
		"Pacific/Apia": "2011-12-30T10:00Z", "America/St_Johns": "2026-03-08T05:30Z", "Africa/Casablanca": "2026-02-15T02:00Z",
	}
	for range 25 {
		for name, near := range changes {
			w := permits.Window{
				Start: time.Duration(random.IntN(24*4)) * 15 * time.Minute, Length: time.Duration(1+random.IntN(600)) * 7 * time.Minute,
				Location: zone(t, name),
			}
			if random.IntN(2) == 0 {
				w.Start = time.Duration(random.IntN(4*4)) * 15 * time.Minute // changes are at night
			}
			for d := range time.Saturday + 1 {
				if random.IntN(2) == 0 {
					w.Days = append(w.Days, d)
				}
			}
			begin := when(t, near).Add(-12 * 24 * time.Hour)
			starts := startsOf(w, begin)
			for range 40 {
				now := begin.Add(9*24*time.Hour + time.Duration(random.IntN(6*24*60))*time.Minute)
				want := time.Time{}
				for _, start := range starts {
					if now.Before(start.Add(w.Length)) {
						want = start
						break
					}
				}
				if want.Before(now) {
					want = now
				}
				require.True(t, want.Equal(w.Opens(now)), "%s %+v at %v: opens %v, want %v", name, w, now.In(w.Location), w.Opens(now), want.In(w.Location))
			}
		}
	}
}

// startsOf returns the instants of 28 days at which a window opens.
func startsOf(w permits.Window, begin time.Time) (starts []time.Time) {
	done := map[int]bool{} // the days whose start was found
	day := func(at time.Time) (number, minute int, weekday time.Weekday) {
		at = at.In(w.Location)
		y, m, d := at.Date()
		midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		return int(midnight.Unix() / 86400), at.Hour()*60 + at.Minute(), midnight.Weekday()
	}
	opens := func(weekday time.Weekday) bool {
		return len(w.Days) == 0 || slices.Contains(w.Days, weekday)
	}
	first, _, _ := day(begin)
	for at := begin; at.Before(begin.Add(28 * 24 * time.Hour)); at = at.Add(time.Minute) {
		number, minute, _ := day(at)
		for d := number - 1; d <= number; d++ {
			weekday := time.Unix(int64(d)*86400, 0).UTC().Weekday()
			passed := d < number || time.Duration(minute)*time.Minute >= w.Start
			if d > first && passed && !done[d] && opens(weekday) {
				done[d] = true
				starts = append(starts, at)
			}
		}
	}
	return starts
}

func TestWindow_Invalid_NeverOpens(t *testing.T) {
	for name, w := range map[string]permits.Window{
		"no length":          {Start: time.Hour},
		"no length, a day":   {Days: weekdays},
		"a negative length":  {Length: -time.Hour},
		"a negative start":   {Start: -time.Hour, Length: time.Hour},
		"a start after 24 h": {Start: 24 * time.Hour, Length: time.Hour},
		"no such weekday":    {Days: []time.Weekday{7}, Length: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, w.Opens(t0))
			require.ErrorContains(t, permits.Policy{TTL: time.Minute, Window: w}.Validate(), "window")
		})
	}
}

func FuzzWindow(f *testing.F) {
	f.Add(int64(0), int64(22*time.Hour), int64(6*time.Hour), uint8(3), "Europe/Berlin")
	f.Add(int64(1774742400), int64(150*time.Minute), int64(time.Hour), uint8(0), "America/New_York")
	f.Fuzz(func(t *testing.T, seconds, start, length int64, days uint8, name string) {
		location, err := time.LoadLocation(name)
		if err != nil {
			return
		}
		w := permits.Window{Start: time.Duration(start), Length: time.Duration(length), Location: location}
		for d := range time.Weekday(8) {
			if days>>d&1 == 1 {
				w.Days = append(w.Days, d)
			}
		}
		now := time.Unix(seconds%(1<<35), 0)
		switch opens := w.Opens(now); {
		case opens.IsZero():
			require.Error(t, permits.Policy{TTL: time.Minute, Window: w}.Validate())
		case opens.Before(now) || opens.After(now.Add(10*24*time.Hour)):
			t.Fatalf("%+v opens at %v, asked at %v", w, opens, now)
		default:
			require.True(t, opens.Equal(w.Opens(opens)), "it is open then")
		}
	})
}
