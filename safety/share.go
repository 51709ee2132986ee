// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"time"
)

// day is for how long a deletion counts against the share of what a class may lose.
const day = 24 * time.Hour

// alwaysFew is a number of unowned VMs which is not too many whatever the share is, so
// that small classes are not held for ever.
const alwaysFew = 1

// share is how much of a listing has no owner. What was deleted within a day counts as
// still listed and unowned, so that a list of machines which decays slowly costs no more
// VMs in a day than one which is lost at once.
type share struct {
	of              string // what is counted
	unowned, listed int
	deleted         int // within a day, and counted in both
}

// addDeleted counts deletions that are not counted yet.
func (s *share) addDeleted(ids []string, unowned, listed func(id string) bool) {
	s.deleted = len(ids)
	for _, id := range ids {
		if !unowned(id) {
			s.unowned++
		}
		if !listed(id) {
			s.listed++
		}
	}
}

// tooMany says whether so many unowned VMs speak against the machines rather than
// against the VMs. 100 percent are never too many.
func (s share) tooMany(a allowance) bool {
	return s.unowned > alwaysFew && a.percent < 100 && s.unowned*100*minutes(day) > s.listed*a.percent*minutes(a.age)
}

// String says how much is unowned, in a few words.
func (s share) String() string {
	text := fmt.Sprintf("%d of %d %s have no machine", s.unowned, s.listed, s.of)
	if s.deleted > 0 {
		text += fmt.Sprintf(", %d of them deleted within %s", s.deleted, day)
	}
	return text
}

// allowance is which share may be unowned: so many percent, times the age as a part of a day.
type allowance struct {
	percent int
	age     time.Duration // at most a day
}

func minutes(d time.Duration) int { return int(d / time.Minute) }

// allowed returns which share of the VMs of a class may be unowned. A state that is younger
// than a day does not know what was deleted before it: it allows as much of the share as
// its age is of a day.
func (s *step) allowed() allowance {
	return allowance{s.policy.MaxPercent, min(max(0, s.now.Sub(s.next.Since)), day)}
}

// tooMany returns the words for a share that is too large.
func (s *step) tooMany(is share) string {
	a := s.allowed()
	text := fmt.Sprintf("%s; more than %d and more than %.1f %% are not believed", is, alwaysFew, float64(a.percent)*a.age.Hours()/day.Hours())
	if a.age < day {
		text += fmt.Sprintf(", from %s on more than %d %%", s.next.Since.Add(day).UTC().Format(time.RFC3339), a.percent)
	}
	return text
}
