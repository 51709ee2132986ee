// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// unread is a time in which no Node can be read, not even live. The zero value is none.
type unread struct{ from, until time.Time }

// drawUnread draws the time in which no Node can be read. It begins about when machines are deleted, and
// is longer than the drain timeout, which is shortened for the number of rounds.
func (s *sim) drawUnread(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 35))
	if rng.IntN(3) > 0 {
		return
	}
	s.policy.DrainTimeout = min(s.policy.DrainTimeout, 20*time.Minute)
	from := s.clock.Now().Add(time.Duration(rng.Int64N(int64(6 * time.Minute))))
	s.unread = unread{from, from.Add(time.Duration(rng.Int64N(int64(time.Hour))))}
}

func (u unread) at(now time.Time) bool {
	return !u.from.IsZero() && !now.Before(u.from) && now.Before(u.until)
}

// hideNode takes the Node from an observation while it cannot be read.
func (s *sim) hideNode(in *machine.Observation, kept *memory) {
	if s.unread.at(s.clock.Now()) {
		in.Node = machine.NodeView{Unanswered: kept.readNode}
	}
}

// forceDue returns when a deletion may use force in a schedule with unread Nodes. Zero means never.
func (s *sim) forceDue(m *v1alpha1.Machine) time.Time {
	switch {
	case s.unread.from.IsZero() || m.DeletionTimestamp.IsZero():
		return time.Time{}
	case forced(m) && s.unread.at(s.clock.Now()):
		return m.DeletionTimestamp.Time
	case s.policy.DrainTimeout > 0:
		return m.DeletionTimestamp.Add(s.policy.DrainTimeout)
	default:
		return time.Time{}
	}
}

// mayForce reports whether the deletion of a machine may use force because of unread Nodes.
func (s *sim) mayForce(m *v1alpha1.Machine) bool {
	due := s.forceDue(m)
	return !due.IsZero() && !s.clock.Now().Before(due)
}

// checkUnread checks that a deletion ends a few minutes after the drain timeout, or after a user forced
// it, although the Node cannot be read. The Node is then left.
func (s *sim) checkUnread() {
	now := s.clock.Now()
	if !s.unread.at(now) {
		return
	}
	for name, m := range s.machines {
		if !s.mayForce(m) {
			continue
		}
		s.nameless[name] = true
		if kept := s.memory[m.UID]; kept != nil && kept.vm.Failure.Code != codes.OK {
			continue // it waits for the provider
		}
		if due := latest(latest(s.forceDue(m), s.unread.from), s.disturbed).Add(6 * time.Minute); now.After(due) {
			s.fault("%s is not deleted by %s, while its node cannot be read: %s", name, due, m.Status.LastOperation.Description)
		}
	}
}
