// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// State is what [Step] remembers. It can be stored as JSON, or be kept in
// memory: losing it costs time, never safety. The zero State remembers nothing.
// No two steps may go out from the same State at a time, or [Policy.MaxDeletions]
// counts for each.
type State struct {
	// Seen are the VMs found unowned, by normalized provider ID, and the side resources,
	// by kind and ID.
	Seen map[string]sighting `json:"seen,omitempty"`
	// Proposed are the times of the latest proposals to delete.
	Proposed []time.Time `json:"proposed,omitempty"`
	// Deleted are the VMs and side resources without a machine whose deletion was
	// proposed within the last day.
	Deleted []deletion `json:"deleted,omitempty"`
	// Since is when the memory began: what was deleted before is not known.
	Since time.Time `json:"since,omitzero"`
}

// sighting is what is remembered of one VM or side resource that was found unowned.
type sighting struct {
	// Class is the one that listed it first, as namespace/name.
	Class string `json:"class"`
	// Kind of the side resource; empty for a VM.
	Kind string `json:"kind,omitempty"`
	// MachineName that it carries.
	MachineName string `json:"machineName"`
	// Reason why it has no owner: [NoMachine], [SecondVM] or [Leftover].
	Reason machinist.Reason `json:"reason"`
	// First and Last are the times of the first and the latest listing which show
	// it so, without another finding between them.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Proposed is when its deletion was proposed last; zero means not yet.
	Proposed time.Time `json:"proposed,omitzero"`
}

// deletion is what is remembered of a VM or side resource whose deletion was proposed.
type deletion struct {
	// Key in State.Seen.
	Key string `json:"key"`
	// Kind of the side resource; empty for a VM.
	Kind string `json:"kind,omitempty"`
	// Namespace of the class, and MachineName that it carried.
	Namespace   string `json:"namespace"`
	MachineName string `json:"machineName"`
	// At is when the deletion was proposed last.
	At time.Time `json:"at"`
}

// at returns a copy of the state without what no longer counts. A state from
// elsewhere may hold anything. A time after now is that of a clock that was set back: it
// counts as now, not for ever.
func (s State) at(p Policy, now time.Time) State {
	next := State{Seen: maps.Clone(s.Seen), Proposed: slices.Clone(s.Proposed), Deleted: slices.Clone(s.Deleted), Since: notAfter(s.Since, now)}
	if next.Seen == nil {
		next.Seen = map[string]sighting{}
	}
	maps.DeleteFunc(next.Seen, func(_ string, g sighting) bool {
		return g.First.After(g.Last) || g.Last.After(now) || now.Sub(g.Last) > p.memory()
	})
	for id, g := range next.Seen {
		if g.Proposed.After(now) {
			g.Proposed = now
			next.Seen[id] = g
		}
	}
	for i, t := range next.Proposed {
		next.Proposed[i] = notAfter(t, now)
	}
	next.Proposed = slices.DeleteFunc(next.Proposed, func(t time.Time) bool { return now.Sub(t) >= p.Period })
	slices.SortFunc(next.Proposed, time.Time.Compare)
	next.Proposed = slices.Clip(next.Proposed[max(0, len(next.Proposed)-p.MaxDeletions):])
	for i := range next.Deleted {
		next.Deleted[i].At = notAfter(next.Deleted[i].At, now)
	}
	next.Deleted = slices.DeleteFunc(next.Deleted, func(d deletion) bool { return now.Sub(d.At) >= day })
	return next
}

func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// see notes that a listing of time at shows a VM or side resource as unowned, and returns
// what is known of it by now.
func (s State) see(key string, g sighting, at time.Time) sighting {
	known, ok := s.Seen[key]
	if !ok || known.MachineName != g.MachineName || known.Reason != g.Reason || known.Kind != g.Kind {
		known = g
		known.First, known.Last = at, at
	}
	if at.After(known.Last) {
		known.Last = at
	}
	s.Seen[key] = known
	return known
}

// forget drops what a listing of a class disproves: what it shows otherwise, and what it
// shows no more.
func (s State) forget(sides bool, class types.NamespacedName, listed, unowned func(key string) bool) {
	name := class.String()
	maps.DeleteFunc(s.Seen, func(key string, g sighting) bool {
		return (g.Kind != "") == sides && !unowned(key) && (listed(key) || g.Class == name)
	})
}

// delete notes that the deletion of a candidate is proposed. Second VMs do not count: the
// machine that has another one is there.
func (s *State) delete(c candidate, now time.Time) {
	if c.Reason == SecondVM {
		return
	}
	d := deletion{Key: c.key, Kind: c.Kind, Namespace: c.namespace, MachineName: c.MachineName, At: now}
	i := slices.IndexFunc(s.Deleted, func(e deletion) bool { return e.Key == d.Key && e.Kind == d.Kind })
	if i >= 0 {
		s.Deleted[i] = d
		return
	}
	s.Deleted = append(s.Deleted, d)
}

// deletedOf returns what was deleted in a namespace within a day: the normalized provider
// IDs of VMs, or the names of the machines of side resources.
func (s State) deletedOf(sides bool, namespace string) (out []string) {
	for _, d := range s.Deleted {
		switch {
		case d.Namespace != namespace || (d.Kind != "") != sides:
		case !sides:
			out = append(out, d.Key)
		case !slices.Contains(out, d.MachineName):
			out = append(out, d.MachineName)
		}
	}
	return out
}

// compact returns the state as it is stored.
func (s State) compact() State {
	if len(s.Seen) == 0 {
		s.Seen = nil
	}
	if len(s.Proposed) == 0 {
		s.Proposed = nil
	}
	if len(s.Deleted) == 0 {
		s.Deleted = nil
	}
	return s
}
