// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// How much is lost when a machine goes.
const (
	costsNothing   = iota // it is not available
	costsAvailable        // it is available
	costsPreserved        // it is not available, and preserved
)

// A cutRule says which machines a cut may take.
type cutRule struct {
	most     int64 // the highest cost
	replaced bool  // the gates are asked
	bounded  bool  // as many machines as must be available stay
}

var (
	// unavailableOnly costs no available machine.
	unavailableOnly = cutRule{most: costsNothing, replaced: true, bounded: true}
	// withAvailable takes available machines as well, as far as the bounds allow.
	withAvailable = cutRule{most: costsAvailable, replaced: true, bounded: true}
	// withPreserved takes preserved machines, too.
	withPreserved = cutRule{most: costsPreserved, replaced: true, bounded: true}
	// unbounded ignores the bounds.
	unbounded = cutRule{most: costsPreserved, replaced: true}
	// surplus is for machines that go because fewer are wanted.
	surplus = cutRule{most: costsPreserved, bounded: true}
	// surplusUnbounded is the same without bounds.
	surplusUnbounded = cutRule{most: costsPreserved}
)

// choice returns the order in which machines of a set are chosen to be replaced or
// updated: those that were named, then by what they cost, and among these by the order
// of the policy.
func (c *pass) choice(a *account) machineset.Order {
	named := machineset.Criterion{Name: machineset.ByDemand, Rank: func(m *v1alpha1.Machine) int64 {
		if c.ledger.named[m.UID] {
			return 0
		}
		return 1
	}}
	cost := machineset.Criterion{Name: "Availability", Rank: func(m *v1alpha1.Machine) int64 { return c.cost(a, m) }}
	return append(machineset.Order{named, cost}, c.order...)
}

func (c *pass) cost(a *account, m *v1alpha1.Machine) int64 {
	switch {
	case a.isAvailable(m):
		return costsAvailable
	case preserved(c.in, m, c.now):
		return costsPreserved
	default:
		return costsNothing
	}
}

// preserved reports whether a machine is kept for a user to look at it, or is about to be.
func preserved(in Observation, m *v1alpha1.Machine, now time.Time) bool {
	if machineset.Preserved(m, now) || !machineset.Failed(m) {
		return machineset.Preserved(m, now)
	}
	node, looked := in.nodeOf(m)
	_, reason := machineset.ReplaceFailed(m, machine.NodeView{Looked: looked, Node: node, NoTarget: in.NoCluster}, time.Time{}, now)
	return reason == machineset.ReasonPreservationAsked
}

// choose returns the machines, at most n of those given and in the order of the choice,
// that may be worked on: not more available ones than may be spared, and only those that
// the gates allow. Machines to replace and machines to update in place are chosen alike.
func (c *pass) choose(a *account, from []*v1alpha1.Machine, n, spare int64, rule cutRule, inPlace bool) []machineset.Victim {
	if n <= 0 {
		return nil
	}
	order := c.choice(a)
	var chosen []machineset.Victim
	compared := 0 // chosen machines with the criterion that told them from one that stays
	for _, v := range order.First(from, len(from)) {
		cost := c.cost(a, v.Machine)
		full := int64(len(chosen)) == n
		if full || cost > rule.most || cost == costsAvailable && rule.bounded && spare <= 0 || rule.replaced && !c.ask(a, v.Machine, inPlace) {
			for ; compared < len(chosen); compared++ {
				_, chosen[compared].By = order.Compare(chosen[compared].Machine, v.Machine)
			}
			if full {
				break
			}
			continue
		}
		if cost == costsAvailable {
			spare--
		}
		chosen = append(chosen, v)
	}
	return chosen
}

// take takes machines from the planned size of a set, as many as wanted or as few as may
// go, and returns by how much the size has shrunk. Machines that do not exist go first.
// Machines that have moved to the set have to be acknowledged before, so that all of its
// machines may be chosen.
func (c *pass) take(a *account, want int64, rule cutRule) int64 {
	want = max(0, min(want, a.spec))
	if a.counts.Moving > 0 || rule.bounded && c.ledger.slack() < 0 && c.ledger.silent() != nil {
		return 0
	}
	missing := min(want, a.spec-int64(len(a.stay)))
	taken := c.takeMissing(a, missing, rule)
	if taken == missing {
		taken += c.takeSeen(a, want-taken, a.spec-taken, rule)
	}
	a.spec -= taken
	return taken
}

// takeMissing returns how many machines that were not seen may be given up. If they exist
// after all, the set may delete others in their place.
func (c *pass) takeMissing(a *account, want int64, rule cutRule) int64 {
	risky := min(want, a.unseen, int64(len(a.exposed)))
	for i := range risky {
		m := a.exposed[i]
		available := a.isAvailable(m)
		if available && rule.bounded && c.ledger.slack() <= 0 || rule.replaced && !c.ask(a, m, false) {
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

// takeSeen chooses machines from those that stay, and returns how many. Unless all go
// they have to be named, and there may be only so many names.
func (c *pass) takeSeen(a *account, want, size int64, rule cutRule) int64 {
	chosen := c.choose(a, a.stay, want, c.ledger.slack(), rule, false)
	if int64(len(chosen)) < size {
		names := max(0, machineset.MaxVictims-len(a.outgoing)-len(a.chosen))
		if len(chosen) > names {
			c.hold("machineset/"+a.set.Name, reasonBurst, "no more machines can be named for deletion in one decision")
			chosen = chosen[:names]
		}
	}
	a.lost += a.availableOf(chosen)
	a.remove(chosen)
	a.chosen = append(a.chosen, chosen...)
	return int64(len(chosen))
}

// name writes down which machines go for a size: those that were going already, and those
// that were chosen. None is named if all go. It returns how many could not be named.
func (c *pass) name(a *account, to int64) int {
	switch {
	case to == 0:
		a.victims = slices.Concat(a.outgoing, a.chosen, c.choice(a).First(a.stay, len(a.stay)))
		machineset.NameVictims(a.next, nil)
		return 0
	case to > int64(a.set.Spec.Replicas):
		a.victims, _ = outgoing(a.set, machineset.Eligible(a.machines, nil), to, a.unseen, c.order, c.now)
	default:
		a.victims = append(slices.Clip(a.outgoing), a.chosen...)
	}
	names := make([]string, 0, len(a.victims))
	for i, v := range a.victims {
		if i >= len(a.outgoing) || v.By != machineset.ByDemand || c.ledger.named[v.Machine.UID] { // others go unnamed
			names = append(names, v.Machine.Name)
		}
	}
	return max(0, len(names)-machineset.NameVictims(a.next, a.withLeaving(names)))
}

// withLeaving adds the leaving machines to the names of those that go: a set that has not
// seen that they are leaving would delete others in their place.
func (a *account) withLeaving(names []string) []string {
	for _, m := range a.machines {
		if machineset.Leaving(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// ask asks all gates about a machine, once in a pass, and holds it if one says no.
func (c *pass) ask(a *account, m *v1alpha1.Machine, inPlace bool) bool {
	if len(c.policy.Gates) == 0 {
		return true
	}
	allowed, asked := c.allowed[m.UID]
	if asked {
		return allowed
	}
	if c.allowed == nil {
		c.allowed = map[types.UID]bool{}
	}
	node, _ := c.in.nodeOf(m)
	choice := Choice{Deployment: c.d, Set: a.set, Machine: m, Node: node, InPlace: inPlace, Now: c.now}
	allowed = true
	for _, gate := range c.policy.Gates {
		if gate == nil {
			continue
		}
		var hold machinist.Hold
		if allowed, hold = gate(choice); !allowed {
			c.refused(m, hold)
			break
		}
	}
	c.allowed[m.UID] = allowed
	return allowed
}

// maxRefusals is how many refusals of gates are told one by one.
const maxRefusals = 20

// refused holds a machine that a gate keeps. Refusals beyond a number that a person would
// read are counted in one hold.
func (c *pass) refused(m *v1alpha1.Machine, why machinist.Hold) {
	h := machinist.Hold{Subject: "machine/" + m.Name, Reason: ReasonGate, Message: string(why.Reason) + ": " + why.Message, Until: why.Until}
	if !h.Until.IsZero() && !h.Until.After(c.now) {
		h.Until = c.now.Add(recheck)
	}
	c.refusals++
	if more := c.refusals - maxRefusals; more > 0 {
		h.Subject, h.Message = "machinedeployment/"+c.d.Name, plural(int64(more), "gates keep %d more machine", "gates keep %d more machines")
		if i := slices.IndexFunc(c.out.Holds, func(o machinist.Hold) bool { return o.Subject == h.Subject && o.Reason == ReasonGate }); i >= 0 {
			h.Until = machinist.Earliest(h.Until, c.out.Holds[i].Until)
			c.out.Holds[i] = h
			return
		}
	}
	c.out.Holds = append(c.out.Holds, h)
}
