// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"maps"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
)

// State is what [Step] remembers. It can be stored as JSON, or be kept in
// memory: losing it costs time, never safety. The zero State remembers nothing.
// No two steps may go out from the same State at a time, or [Policy.MaxDeletions]
// counts for each.
type State struct {
	// Seen are the VMs found unowned, by normalized provider ID.
	Seen map[string]sighting `json:"seen,omitempty"`
	// Proposed are the times of the latest proposals to delete.
	Proposed []time.Time `json:"proposed,omitempty"`
}

// sighting is what is remembered of one VM that was found unowned.
type sighting struct {
	// Class is the one that listed it first, as namespace/name.
	Class string `json:"class"`
	// MachineName that the VM carries.
	MachineName string `json:"machineName"`
	// Reason why nobody owns it: [NoMachine] or [SecondVM].
	Reason machinist.Reason `json:"reason"`
	// First and Last are the times of the first and the latest listing which show
	// it so, without another finding between them.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Proposed is when its deletion was proposed last; zero means not yet.
	Proposed time.Time `json:"proposed,omitzero"`
}

// at returns a copy of the state without what no longer counts. A state from
// elsewhere may hold anything.
func (s State) at(p Policy, now time.Time) State {
	next := State{Seen: maps.Clone(s.Seen), Proposed: slices.Clone(s.Proposed)}
	if next.Seen == nil {
		next.Seen = map[string]sighting{}
	}
	maps.DeleteFunc(next.Seen, func(_ string, g sighting) bool {
		return g.First.After(g.Last) || g.Last.After(now) || now.Sub(g.Last) > p.Memory
	})
	for i, t := range next.Proposed {
		if t.After(now) { // the clock was set back: count it as new, not for ever
			next.Proposed[i] = now
		}
	}
	next.Proposed = slices.DeleteFunc(next.Proposed, func(t time.Time) bool { return now.Sub(t) >= p.Period })
	slices.SortFunc(next.Proposed, time.Time.Compare)
	next.Proposed = slices.Clip(next.Proposed[max(0, len(next.Proposed)-p.MaxDeletions):])
	for id, g := range next.Seen {
		if g.Proposed.After(now) {
			g.Proposed = now
			next.Seen[id] = g
		}
	}
	return next
}

// see notes that a listing of time at shows a VM as unowned, and returns what is
// known of it by now.
func (s State) see(id string, g sighting, at time.Time) sighting {
	known, ok := s.Seen[id]
	if !ok || known.MachineName != g.MachineName || known.Reason != g.Reason {
		known = sighting{Class: g.Class, MachineName: g.MachineName, Reason: g.Reason, First: at, Last: at}
	}
	if at.After(known.Last) {
		known.Last = at
	}
	s.Seen[id] = known
	return known
}

// compact returns the state as it is stored.
func (s State) compact() State {
	if len(s.Seen) == 0 {
		s.Seen = nil
	}
	if len(s.Proposed) == 0 {
		s.Proposed = nil
	}
	return s
}
