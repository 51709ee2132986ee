// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"time"
)

// day is how long a deletion counts in a share.
const day = 24 * time.Hour

// alwaysFew is the number of VMs without a machine that is allowed in every class, so that
// small classes are not held forever.
const alwaysFew = 1

// share is the part of a listing that has no owner. Deletions within a day count as listed
// and unowned. A list of machines that shrinks slowly thus causes no more deletions in a day
// than one that is lost at once.
type share struct {
	of              string // the counted objects
	unowned, listed int
	deleted         int // within a day; included in unowned and listed
}

// addDeleted adds the deletions that are not in the listing.
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

// tooMany reports whether the share is above the allowance. With 100 percent it never is.
func (s share) tooMany(a allowance) bool {
	return s.unowned > alwaysFew && a.percent < 100 && s.unowned*100*minutes(day) > s.listed*a.percent*minutes(a.age)
}

// String returns the share in words.
func (s share) String() string {
	text := fmt.Sprintf("%d of %d %s have no machine", s.unowned, s.listed, s.of)
	if s.deleted > 0 {
		text += fmt.Sprintf(", %d of them deleted within %s", s.deleted, day)
	}
	return text
}

// allowance is the allowed share: percent, multiplied with age as a part of a day.
type allowance struct {
	percent int
	age     time.Duration // at most a day
}

func minutes(d time.Duration) int { return int(d / time.Minute) }

// allowed returns the allowed share of VMs without a machine. A state younger than a day does
// not know all deletions of the day, so it allows a part of the percentage.
func (s *step) allowed() allowance {
	return allowance{s.policy.MaxPercent, min(max(0, s.now.Sub(s.next.Since)), day)}
}

// tooMany describes a share above the allowance.
func (s *step) tooMany(is share) string {
	a := s.allowed()
	text := fmt.Sprintf("%s; at most %d or %.1f %% is allowed", is, alwaysFew, float64(a.percent)*a.age.Hours()/day.Hours())
	if a.age < day {
		text += fmt.Sprintf(", %d %% from %s on", a.percent, s.next.Since.Add(day).UTC().Format(time.RFC3339))
	}
	return text
}
