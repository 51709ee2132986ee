// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// How much is lost when a machine goes.
const (
	worthNothing = iota // it is not available
	worthSlack          // it is available
	worthKeeping        // it is not available, and preserved
)

// A taking says which machines a cut may take.
type taking struct {
	most     int64 // the highest worth that may go
	replaced bool  // the gates are asked
	bounded  bool  // the floor of available machines is kept
}

// Ways to take machines from a set.
var (
	// brokenOnes costs no available machine.
	brokenOnes = taking{most: worthNothing, replaced: true, bounded: true}
	// spareOnes takes available machines as well, as far as the floor allows.
	spareOnes = taking{most: worthSlack, replaced: true, bounded: true}
	// evenPreserved takes preserved machines, too.
	evenPreserved = taking{most: worthKeeping, replaced: true, bounded: true}
	// allOnes does not look at the floor.
	allOnes = taking{most: worthKeeping, replaced: true}
	// unwanted is for machines that go because fewer are wanted.
	unwanted = taking{most: worthKeeping, bounded: true}
	// unwantedNow is the same without a floor.
	unwantedNow = taking{most: worthKeeping}
)

// choice is the order in which machines are chosen to be replaced or updated:
// those that somebody named, then unavailable ones, then available ones, and last
// those that are preserved and not available; and among these by the order of the
// policy.
func (c *pass) choice(a *account) machineset.Order {
	named := machineset.Criterion{Name: machineset.ByDemand, Rank: func(m *v1alpha1.Machine) int64 {
		if c.wanted[m.UID] {
			return 0
		}
		return 1
	}}
	worth := machineset.Criterion{Name: "Availability", Rank: func(m *v1alpha1.Machine) int64 { return c.worth(a, m) }}
	return append(machineset.Order{named, worth}, c.policy.order(c.now)...)
}

func (c *pass) worth(a *account, m *v1alpha1.Machine) int64 {
	switch {
	case c.available(a, m):
		return worthSlack
	case c.preserved(m):
		return worthKeeping
	default:
		return worthNothing
	}
}

// preserved says whether a machine is kept for somebody to look at it, or is
// about to be.
func (c *pass) preserved(m *v1alpha1.Machine) bool {
	if machineset.Preserved(m, c.now) || !machineset.Failed(m) {
		return machineset.Preserved(m, c.now)
	}
	node, looked := c.nodeOf(m)
	_, reason := machineset.ReplaceFailed(m, machine.NodeView{Looked: looked, Node: node, NoTarget: c.in.NoCluster}, time.Time{}, c.now)
	return reason == machineset.ReasonPreservationAsked
}

// choose returns the machines, at most n of those given and in the order of the
// choice, that may be worked on: not more available ones than may be spared, and
// only those that the gates allow. It is the same for machines that are replaced
// and for those that are updated in place.
func (c *pass) choose(a *account, from []*v1alpha1.Machine, n, spare int64, t taking, inPlace bool) []machineset.Victim {
	if n <= 0 {
		return nil
	}
	order := c.choice(a)
	var chosen []machineset.Victim
	told := 0 // of whom it is known what told them from one that stays
	for _, v := range order.First(from, len(from)) {
		worth := c.worth(a, v.Machine)
		full := int64(len(chosen)) == n
		if full || worth > t.most || worth == worthSlack && t.bounded && spare <= 0 || t.replaced && !c.ask(a, v.Machine, inPlace) {
			for ; told < len(chosen); told++ {
				_, chosen[told].By = order.Compare(chosen[told].Machine, v.Machine)
			}
			if full {
				break
			}
			continue
		}
		if worth == worthSlack {
			spare--
		}
		chosen = append(chosen, v)
	}
	return chosen
}

// take takes machines from the planned size of a set, as many as wanted or as
// few as may go, and returns by how much the size has shrunk. Machines that do not
// exist go first.
func (c *pass) take(l *ledger, a *account, want int64, t taking) int64 {
	want = max(0, min(want, a.spec))
	if t.bounded && l.slack() < 0 && !l.allReported() {
		return 0
	}
	missing := min(want, a.spec-a.staying())
	taken := c.takeMissing(l, a, missing, t)
	if taken == missing {
		taken += c.takeSeen(l, a, want-taken, a.spec-taken, t)
	}
	a.spec -= taken
	return taken
}

// takeMissing returns how many machines that were not seen may be given up. If
// they exist after all, the set may let others go in their place.
func (c *pass) takeMissing(l *ledger, a *account, want int64, t taking) int64 {
	risky := min(want, a.unseen, int64(len(a.exposed)))
	for i := range risky {
		m := a.exposed[i]
		available := c.available(a, m)
		if available && t.bounded && l.slack() <= 0 || t.replaced && !c.ask(a, m, false) {
			a.exposed = a.exposed[i:]
			return i
		}
		if available {
			a.lost++
		}
	}
	a.exposed = a.exposed[risky:]
	return max(0, want)
}

// takeSeen chooses machines from those that stay, and returns how many. Unless all
// go they have to be named, and there may be only so many names.
func (c *pass) takeSeen(l *ledger, a *account, want, size int64, t taking) int64 {
	chosen := c.choose(a, a.unchosen(), want, l.slack(), t, false)
	if int64(len(chosen)) < size {
		names := max(0, machineset.MaxVictims-len(a.goers)-len(a.chosen))
		if len(chosen) > names {
			c.hold(a.set.Name, ReasonBurst, "no more machines can be named to go in one pass")
			chosen = chosen[:names]
		}
	}
	for _, v := range chosen {
		if c.available(a, v.Machine) {
			a.lost++
		}
	}
	a.chosen = append(a.chosen, chosen...)
	return int64(len(chosen))
}

// staying returns how many of the machines that were seen stay.
func (a *account) staying() int64 { return int64(len(a.stay) - len(a.chosen)) }

// unchosen returns the machines that stay.
func (a *account) unchosen() []*v1alpha1.Machine {
	if len(a.chosen) == 0 {
		return a.stay
	}
	gone := make(map[*v1alpha1.Machine]bool, len(a.chosen))
	for _, v := range a.chosen {
		gone[v.Machine] = true
	}
	return slices.DeleteFunc(slices.Clone(a.stay), func(m *v1alpha1.Machine) bool { return gone[m] })
}

// name writes down who goes for a size: those that were going already, and those
// that were chosen. Nobody is named if all go, or none. It returns how many of
// them could not be named.
func (c *pass) name(a *account, to int64) int {
	switch {
	case to == 0:
		a.victims = append(slices.Clip(a.goers), c.choice(a).First(a.stay, len(a.stay))...)
		machineset.NameVictims(a.next, nil)
		return 0
	case to > int64(a.set.Spec.Replicas):
		a.victims, _ = c.goers(a.set, machineset.Eligible(a.machines, nil), to, a.unseen)
	default:
		a.victims = append(slices.Clip(a.goers), a.chosen...)
	}
	names := make([]string, 0, len(a.victims))
	for i, v := range a.victims {
		if i >= len(a.goers) || v.By != machineset.ByDemand || c.wanted[v.Machine.UID] { // others go unnamed
			names = append(names, v.Machine.Name)
		}
	}
	return max(0, len(names)-machineset.NameVictims(a.next, a.withLeaving(names)))
}

// withLeaving adds the machines that are on their way out to the names of those that
// go: a set that has not seen that they are leaving would let others go in their place.
func (a *account) withLeaving(names []string) []string {
	for _, m := range a.machines {
		if machineset.Leaving(m) {
			names = append(names, m.Name)
		}
	}
	return names
}
