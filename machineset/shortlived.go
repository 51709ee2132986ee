// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ShortLife is how long a machine lives that is worth its creation. It is shorter
// than machines take to time out when they are created or fall ill, so that only
// those count which fail for a reason that no timeout slows down.
const ShortLife = 10 * time.Minute

// shortLived says whether a machine was deleted so soon after its creation.
func shortLived(m *v1alpha1.Machine) bool {
	return m.DeletionTimestamp != nil && m.DeletionTimestamp.Sub(m.CreationTimestamp.Time) < ShortLife
}

// worthwhile returns how many of the missing machines may be created if machines do
// not live: each that fails at once is replaced at once, under a new name, so that
// nothing else slows that down, and those on their way out pile up. There are never
// more of them, beside what the set wants, than it wants, or than it replaces of those
// it has released. The reference system has no such bound.
func (s *pass) worthwhile(missing int) int {
	spare := max(s.counts.Desired, s.policy.Replaced)
	allowed := min(missing, max(0, s.counts.Desired+spare-s.counts.Present-s.counts.InFlight-s.counts.ShortLived))
	if at := slices.IndexFunc(s.machines, shortLived); allowed < missing && at >= 0 {
		s.hold(s.machines[at].Name, ReasonShortLived, fmt.Sprintf("%d of %d missing machines are not created: %d that were deleted within %s of their creation are still there",
			missing-allowed, missing, s.counts.ShortLived, ShortLife), time.Time{})
	}
	return allowed
}
