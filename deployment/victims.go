// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// The costs of the deletion of a machine.
const (
	costsNothing   = iota // it is not available
	costsAvailable        // it is available
	costsPreserved        // it is not available, and preserved
)

// cutRule is which machines a decrease may take.
type cutRule struct {
	most     int64 // highest allowed cost
	replaced bool  // asks the gates
	bounded  bool  // keeps the minimum of available machines
}

var (
	// unavailableOnly takes no available machine.
	unavailableOnly = cutRule{most: costsNothing, replaced: true, bounded: true}
	// withAvailable also takes available machines within the bounds.
	withAvailable = cutRule{most: costsAvailable, replaced: true, bounded: true}
	// withPreserved also takes preserved machines.
	withPreserved = cutRule{most: costsPreserved, replaced: true, bounded: true}
	// unbounded ignores the bounds.
	unbounded = cutRule{most: costsPreserved, replaced: true}
	// surplus is for a decrease of the replicas.
	surplus = cutRule{most: costsPreserved, bounded: true}
	// surplusUnbounded is surplus without bounds.
	surplusUnbounded = cutRule{most: costsPreserved}
)

// choice returns the order in which machines of a set are deleted, replaced or updated: machines that
// were named for deletion, then the order of the policy, which is that of the sets. The cost is
// compared just before the health, so that a machine of lower priority goes before an unavailable
// one, as from a set alone. An order without health is asked before the cost.
func (c *pass) choice(a *account) machineset.Order {
	named := members.Criterion{Name: members.ByDemand, Rank: func(m *v1alpha1.Machine) int64 {
		if c.ledger.named[m.UID] {
			return 0
		}
		return 1
	}}
	cost := members.Criterion{Name: "Availability", Rank: func(m *v1alpha1.Machine) int64 { return c.cost(a, m) }}
	at := slices.IndexFunc(c.order, func(o members.Criterion) bool { return o.Name == members.ByHealth })
	if at < 0 {
		at = len(c.order)
	}
	return slices.Concat(machineset.Order{named}, c.order[:at], machineset.Order{cost}, c.order[at:])
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

// preserved reports whether a machine is preserved, or will be.
func preserved(in Observation, m *v1alpha1.Machine, now time.Time) bool {
	if members.Preserved(m, now) || !members.Failed(m) {
		return members.Preserved(m, now)
	}
	node, looked := in.nodeOf(m)
	_, reason := machineset.ReplaceFailed(m, machine.NodeView{Looked: looked, Node: node, NoTarget: in.NoCluster}, time.Time{}, now)
	return reason == machineset.ReasonPreservationAsked
}

// choose returns at most n of the given machines, in the order of the choice. At most spare of them
// are available, and all gates allow them. It is used for replacements and for in-place updates.
func (c *pass) choose(a *account, from []*v1alpha1.Machine, n, spare int64, rule cutRule, inPlace bool) []machineset.Victim {
	if n <= 0 {
		return nil
	}
	order := c.choice(a)
	var chosen []machineset.Victim
	compared := 0 // number of chosen machines with a criterion
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

// take decreases the planned size of a set by at most want, as far as the rule allows, and returns
// by how much. Unobserved machines are first. It returns 0 while machines that moved to the set are
// not acknowledged.
func (c *pass) take(a *account, want int64, rule cutRule) int64 {
	want = max(0, min(want, a.spec))
	if a.counts.Moving > 0 || rule.bounded && c.ledger.mayLose() < 0 && c.ledger.unreported() != nil {
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

// takeMissing returns how many unobserved machines may be given up. If they exist, the set may
// delete others instead.
func (c *pass) takeMissing(a *account, want int64, rule cutRule) int64 {
	risky := min(want, a.unseen, int64(len(a.exposed)))
	for i := range risky {
		m := a.exposed[i]
		available := a.isAvailable(m)
		if available && rule.bounded && c.ledger.mayLose() <= 0 || rule.replaced && !c.ask(a, m, false) {
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

// takeSeen chooses machines from those that stay, and returns their number. Unless the size becomes
// 0 they must be named, and the number of names is limited.
func (c *pass) takeSeen(a *account, want, size int64, rule cutRule) int64 {
	chosen := c.choose(a, a.stay, want, c.ledger.mayLose(), rule, false)
	if int64(len(chosen)) < size {
		names := max(0, members.MaxVictims-len(a.outgoing)-len(a.chosen))
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

// name names the machines that the set deletes for a size: those of earlier decisions and the
// chosen ones. No names are needed for the size 0. It returns how many machines could not be named.
func (c *pass) name(a *account, to int64) int {
	switch {
	case to == 0:
		a.victims = slices.Concat(a.outgoing, a.chosen, c.choice(a).First(a.stay, len(a.stay)))
		members.NameVictims(a.next, nil)
		return 0
	case to > int64(a.set.Spec.Replicas):
		a.victims, _ = outgoing(a.set, members.Eligible(a.machines, nil), to, a.unseen, c.order, c.now)
	default:
		a.victims = append(slices.Clip(a.outgoing), a.chosen...)
	}
	names := make([]string, 0, len(a.victims))
	for i, v := range a.victims {
		if i >= len(a.outgoing) || v.By != members.ByDemand || c.ledger.named[v.Machine.UID] { // the set deletes the others by itself
			names = append(names, v.Machine.Name)
		}
	}
	return max(0, len(names)-members.NameVictims(a.next, a.withLeaving(names)))
}

// withLeaving adds the terminating machines to the names. A set that has not observed their
// deletion would delete others.
func (a *account) withLeaving(names []string) []string {
	for _, m := range a.machines {
		if members.Leaving(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// ask asks all gates about a machine, once in a pass, and holds the machine if one refuses.
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

// maxRefusals is the maximum number of holds about gates, besides the one with the number of the others.
const maxRefusals = 20

// refused holds a machine that a gate refused. After maxRefusals one hold counts the others.
func (c *pass) refused(m *v1alpha1.Machine, why machinist.Hold) {
	h := machinist.Hold{Subject: "machine/" + m.Name, Reason: reasonGate, Message: string(why.Reason) + ": " + why.Message, Until: why.Until}
	if !h.Until.IsZero() && !h.Until.After(c.now) {
		h.Until = c.now.Add(recheck)
	}
	c.refusals++
	if more := c.refusals - maxRefusals; more > 0 {
		h.Subject, h.Message = "machinedeployment/"+c.d.Name, plural(int64(more), "gates keep %d more machine", "gates keep %d more machines")
		if i := slices.IndexFunc(c.out.Holds, func(o machinist.Hold) bool { return o.Subject == h.Subject && o.Reason == reasonGate }); i >= 0 {
			h.Until = machinist.Earliest(h.Until, c.out.Holds[i].Until)
			c.out.Holds[i] = h
			return
		}
	}
	c.out.Holds = append(c.out.Holds, h)
}
