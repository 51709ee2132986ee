// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
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

// neverJoined says whether a machine failed before it had joined: its creation is what
// was done for it last.
func neverJoined(m *v1alpha1.Machine) bool {
	return Failed(m) && m.Status.LastOperation.Type == v1alpha1.MachineOperationCreate
}

// worthwhile returns how many of the missing machines may be created if machines do
// not live: each that fails at once is replaced at once, under a new name, so that
// nothing else slows that down, and those on their way out pile up. There are never
// more of them, beside what the set wants, than it wants, or than it replaces of those
// it has released. Those that never joined and are gone count for as long as
// [ShortLife] after their deletion, whatever the clocks of others say. The reference
// system has no such bound.
func (s *pass) worthwhile(missing int) int {
	spare, gone := max(s.counts.Desired, s.policy.Replaced), s.goneUnjoined()
	allowed := min(missing, max(0, s.counts.Desired+spare-s.counts.Present-s.counts.InFlight-s.counts.ShortLived-len(gone)))
	if allowed == missing {
		return allowed
	}
	subject, until := s.in.Set.Name, time.Time{}
	if at := slices.IndexFunc(s.machines, shortLived); at >= 0 {
		subject = s.machines[at].Name
	}
	message := fmt.Sprintf("%d of %d missing machines are not created", missing-allowed, missing)
	if s.counts.ShortLived > 0 {
		message += fmt.Sprintf(": %d that were deleted within %s of their creation are still there", s.counts.ShortLived, ShortLife)
	}
	for _, at := range gone {
		until = machinist.Earliest(until, at.Add(ShortLife))
	}
	if len(gone) > 0 {
		message += fmt.Sprintf(": %d that failed before they joined were deleted within the last %s", len(gone), ShortLife)
	}
	s.hold(subject, ReasonShortLived, message, until)
	return allowed
}

// goneUnjoined returns when machines that never joined were deleted, if that was less
// than ShortLife ago, and they are not counted otherwise.
func (s *pass) goneUnjoined() NeverJoined {
	gone := s.in.NeverJoined.recent(s.now)
	for _, m := range s.machines {
		if !Leaving(m) || shortLived(m) {
			delete(gone, m.UID)
		}
	}
	return gone
}

// NeverJoined is when this process deleted machines of one set that failed before they
// had joined, by UID. Each slows down what is created for [ShortLife] after its
// deletion, by the clock that recorded it. The zero NeverJoined is that there were none.
// It is a value, and may be stored as JSON; losing it costs creations that fail.
type NeverJoined map[types.UID]time.Time

// Deleting returns a copy with a machine that is about to be deleted, if it never joined,
// and without those that count no longer.
func (n NeverJoined) Deleting(d Delete, at time.Time) NeverJoined {
	next := n.recent(at)
	if d.NeverJoined {
		next[d.UID] = at
	}
	return next
}

// recent returns a copy with the deletions of the last ShortLife.
func (n NeverJoined) recent(now time.Time) NeverJoined {
	next := NeverJoined{}
	for uid, at := range n {
		if recorded.Known(at, now) && now.Sub(at) < ShortLife {
			next[uid] = at
		}
	}
	return next
}
