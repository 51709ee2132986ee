// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
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
	for _, sent := range gone {
		until = machinist.Earliest(until, sent.At.Add(ShortLife))
	}
	if len(gone) > 0 {
		message += fmt.Sprintf(": %d that failed before they joined were deleted within the last %s", len(gone), ShortLife)
	}
	s.hold(subject, ReasonShortLived, message, until)
	return allowed
}

// goneUnjoined returns the machines that never joined, were deleted not long ago, and
// are not counted otherwise.
func (s *pass) goneUnjoined() []Sent {
	counted := map[types.UID]bool{}
	for _, m := range s.machines {
		counted[m.UID] = !Leaving(m) || shortLived(m)
	}
	return without(s.in.InFlight.NeverJoined, func(sent Sent) bool { return !recent(sent, s.now) || counted[sent.UID] })
}
