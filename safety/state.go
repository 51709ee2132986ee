// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// State is the memory of [Step]. Store it as JSON or keep it in memory. After a loss the
// grace starts again. Only one Step at a time may use a State, so that [Policy.MaxDeletions]
// limits all of them. The zero State is empty.
type State struct {
	// Seen are the VMs without a machine by normalized provider ID, and the side resources
	// without an owner by kind and ID.
	Seen map[string]unownedRecord `json:"seen,omitempty"`
	// Proposed are the times of the latest proposed deletions.
	Proposed []time.Time `json:"proposed,omitempty"`
	// Deleted are the VMs and side resources whose deletion was proposed within 24 hours.
	Deleted []deletion `json:"deleted,omitempty"`
	// Since is when the memory began. Earlier deletions are unknown.
	Since time.Time `json:"since,omitzero"`
	// Listed are the times of the last complete listings, by class as namespace/name.
	Listed map[string]time.Time `json:"listed,omitempty"`
	// Nodes are the Nodes without a machine whose VM is missing in all listings since a time, by
	// normalized provider ID.
	Nodes map[string]time.Time `json:"nodes,omitempty"`
	// Held are the "Suspicious" classes, as namespace/name.
	Held map[string]heldClass `json:"held,omitempty"`
}

// heldClass is a class that is held because a list is suspicious.
type heldClass struct {
	// Unowned is the number of VMs, or machine names of side resources, without a machine in the
	// last Event.
	Unowned int `json:"unowned"`
	// Reported is the time of that Event.
	Reported time.Time `json:"reported"`
}

// unownedRecord is one VM or side resource without an owner.
type unownedRecord struct {
	// Class that listed it first, as namespace/name.
	Class string `json:"class"`
	// Kind of the side resource. Empty for a VM.
	Kind string `json:"kind,omitempty"`
	// MachineName in the listing.
	MachineName string `json:"machineName"`
	// Reason is "NoMachine", "SecondVM" or "Leftover".
	Reason machinist.Reason `json:"reason"`
	// First and Last are the times of the first and the latest listing that show it without
	// an owner. All listings between them show the same.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Proposed is the time of the latest proposed deletion. Zero means never.
	Proposed time.Time `json:"proposed,omitzero"`
}

// deletion is one VM or side resource whose deletion was proposed.
type deletion struct {
	// Key in State.Seen.
	Key string `json:"key"`
	// Kind of the side resource. Empty for a VM.
	Kind string `json:"kind,omitempty"`
	// Namespace of the class, and MachineName in its listing.
	Namespace   string `json:"namespace"`
	MachineName string `json:"machineName"`
	// At is the time of the latest proposal.
	At time.Time `json:"at"`
}

// at returns a copy of the state without expired entries. A time after now counts as now,
// because the clock may have been set back.
func (s State) at(p Policy, now time.Time) State {
	next := State{Proposed: slices.Clone(s.Proposed), Deleted: slices.Clone(s.Deleted), Since: notAfter(s.Since, now)}
	next.Seen, next.Listed, next.Nodes, next.Held = copied(s.Seen), copied(s.Listed), copied(s.Nodes), copied(s.Held)
	maps.DeleteFunc(next.Listed, func(_ string, t time.Time) bool { return t.After(now) || now.Sub(t) > 2*p.Period })
	for class, h := range next.Held {
		if _, listed := next.Listed[class]; !listed { // the class may be deleted
			delete(next.Held, class)
			continue
		}
		next.Held[class] = heldClass{h.Unowned, notAfter(h.Reported, now)}
	}
	maps.DeleteFunc(next.Nodes, func(_ string, t time.Time) bool { return t.After(now) })
	maps.DeleteFunc(next.Seen, func(_ string, g unownedRecord) bool {
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

// copied returns a copy of a map, which is not nil.
func copied[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}

func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// see records that a listing at a time shows a VM or side resource without an owner. It
// returns the updated record.
func (s State) see(key string, g unownedRecord, at time.Time) unownedRecord {
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

// forget deletes the records that a listing of a class disproves: the listed ones with an
// owner, and those of the class that are no longer listed.
func (s State) forget(sides bool, class types.NamespacedName, listed, unowned func(key string) bool) {
	name := class.String()
	maps.DeleteFunc(s.Seen, func(key string, g unownedRecord) bool {
		return (g.Kind != "") == sides && !unowned(key) && (listed(key) || g.Class == name)
	})
}

// delete records that the deletion of a candidate is proposed. A "SecondVM" is not recorded,
// because its machine exists.
func (s *State) delete(c candidate, now time.Time) {
	if c.Reason == secondVM {
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

// deletedOf returns the deletions in a namespace within a day: normalized provider IDs of
// VMs, or machine names of side resources.
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

// compact returns the state with nil for empty fields, the form for storage.
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
	if len(s.Listed) == 0 {
		s.Listed = nil
	}
	if len(s.Nodes) == 0 {
		s.Nodes = nil
	}
	if len(s.Held) == 0 {
		s.Held = nil
	}
	return s
}
