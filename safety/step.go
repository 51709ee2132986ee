// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// Step finds the VMs that nobody owns, and proposes to delete those that have
// been so for long enough. It returns what to remember for the next step; state
// is not changed. The package comment has the conditions for a deletion.
//
// A VM is protected by a machine with its provider ID, whatever the machine's
// name, and by a machine of its name without a provider ID, whose creation may
// be under way. Neither the phase of the machine nor whether it is being deleted
// plays a part. A VM under the name of a machine with another provider ID is a
// [SecondVM] if that other VM is listed as well, and in doubt otherwise.
// Provider IDs are compared as [nodeops.NormalizeProviderID] says.
//
// The order of listings, VMs and machines does not matter. For the same
// arguments the result is the same.
func Step(state State, in Observation, policy Policy, now time.Time) (State, Decision) {
	p := policy.withDefaults()
	s := step{Observation: in, policy: p, now: now, next: state.at(p, now), ripe: map[string]candidate{}}
	count := map[types.NamespacedName]int{}
	for _, l := range in.Listings {
		count[l.Class]++
	}
	listings := slices.SortedFunc(slices.Values(in.Listings), func(a, b Listing) int {
		return cmp.Or(cmp.Compare(a.Class.Namespace, b.Class.Namespace), cmp.Compare(a.Class.Name, b.Class.Name))
	})
	for _, l := range listings {
		if h := s.doubt(l, count[l.Class]); h.Reason != "" {
			s.holds = append(s.holds, h)
			continue
		}
		if s.owners.in == nil {
			s.owners = ownersOf(in.Machines.Items)
		}
		s.judge(l)
	}
	for _, f := range s.found { // only now that every listing had its say against
		for id, v := range f.unowned {
			s.consider(f.class, f.asOf, id, f.vms[id], v)
		}
	}
	d := Decision{Actions: s.propose()}
	d.Holds = sortHolds(s.holds)
	for _, h := range d.Holds {
		d.NextCheck = machinist.Earliest(d.NextCheck, h.Until)
	}
	if len(s.found) > 0 {
		d.NextCheck = machinist.Earliest(d.NextCheck, now.Add(p.Period))
	}
	return s.next.compact(), d
}

// step is one call of Step.
type step struct {
	Observation
	policy Policy
	now    time.Time
	owners owners
	next   State
	found  []findings
	ripe   map[string]candidate // by normalized provider ID
	holds  []machinist.Hold
}

// findings are the unowned VMs of one listing.
type findings struct {
	class   types.NamespacedName
	asOf    time.Time
	vms     map[string]VM // all of the listing, by normalized provider ID
	unowned map[string]verdict
}

// candidate is a VM that could be deleted.
type candidate struct {
	sighting
	id     string
	action DeleteVM
}

// doubt returns why nothing can be concluded from a listing of which there are n,
// or a hold without a reason.
func (s *step) doubt(l Listing, n int) machinist.Hold {
	h := machinist.Hold{Subject: "class " + l.Class.String(), Until: s.now.Add(s.policy.Retry)}
	machines := s.Machines
	incomplete := !machines.Complete || slices.Contains(machines.Items, nil)
	switch {
	case n > 1:
		h.Reason, h.Message = ListingUnusable, fmt.Sprintf("%d listings", n)
	case l.Unsupported:
		return machinist.Hold{Subject: h.Subject, Reason: Unsupported, Message: "the driver cannot list VMs"}
	case !l.VMs.Complete:
		h.Reason, h.Message = ListingUnusable, cmp.Or(l.Problem, "not complete")
	case s.stale(l.VMs.AsOf):
		h.Reason, h.Message = ListingUnusable, s.age(l.VMs.AsOf)
	case incomplete:
		h.Subject, h.Reason, h.Message = "machines", MachinesUnusable, "not all were read"
	case s.stale(machines.AsOf):
		h.Subject, h.Reason, h.Message = "machines", MachinesUnusable, s.age(machines.AsOf)
	case machines.AsOf.Before(l.VMs.AsOf):
		h.Reason = MachinesUnusable
		h.Message = fmt.Sprintf("the machines were read %s before the VMs", l.VMs.AsOf.Sub(machines.AsOf))
	case s.Namespace == "" || s.Namespace != AllNamespaces && s.Namespace != l.Class.Namespace:
		h.Reason, h.Message = MachinesUnusable, fmt.Sprintf("the machines of namespace %q were read", s.Namespace)
	}
	return h
}

func (s *step) stale(t time.Time) bool { return t.After(s.now) || s.now.Sub(t) > s.policy.MaxAge }

func (s *step) age(t time.Time) string {
	return fmt.Sprintf("%s old, at most %s", s.now.Sub(t), s.policy.MaxAge)
}

// judge looks at the VMs of a listing that can be trusted, and forgets what it
// disproves.
func (s *step) judge(l Listing) {
	class := l.Class.String()
	vms, unclear := s.distinct(l.VMs.Items)
	unowned, nobodys := map[string]verdict{}, unclear
	for id, vm := range vms {
		switch v := s.owners.judge(id, vm, l.Class.Namespace, vms); {
		case v.unowned != "":
			unowned[id] = v
			if v.unowned == NoMachine { // of a second VM the machine itself is the proof
				nobodys++
			}
		case v.doubt != "":
			s.hold("vm "+vm.ProviderID, InDoubt, "machine "+vm.MachineName+v.doubt, s.now.Add(s.policy.Period))
			nobodys++
		}
	}
	if h, ok := s.suspicious(l, nobodys, len(vms)+unclear); ok {
		s.holds = append(s.holds, h)
		clear(unowned) // what such evidence shows is not remembered either
	}
	maps.DeleteFunc(s.next.Seen, func(id string, g sighting) bool {
		_, listed := vms[id]
		_, still := unowned[id]
		return !still && (listed || g.Class == class)
	})
	s.found = append(s.found, findings{class: l.Class, asOf: l.VMs.AsOf, vms: vms, unowned: unowned})
}

// distinct returns the VMs that can be told apart, by normalized provider ID, and
// how many cannot. A machine that has the provider ID makes up for a bad name.
func (s *step) distinct(items []VM) (vms map[string]VM, unclear int) {
	vms = map[string]VM{}
	names := map[string][]string{}
	until := s.now.Add(s.policy.Period)
	for _, vm := range items {
		id := nodeops.NormalizeProviderID(vm.ProviderID)
		if id == "" {
			s.hold("vm of machine "+vm.MachineName, Unidentified, "no provider ID", until)
			unclear++
			continue
		}
		if known, twice := vms[id]; !twice || vm.ProviderID < known.ProviderID {
			vms[id] = vm // of several spellings the same one, whatever the order
		}
		if !slices.Contains(names[id], vm.MachineName) {
			names[id] = append(names[id], vm.MachineName)
		}
	}
	for id, vm := range vms {
		var why string
		switch {
		case s.owners.byID[id]:
			continue
		case len(names[id]) > 1:
			why = "several names"
		case vm.MachineName == "":
			why = "no name"
		default:
			continue
		}
		s.hold("vm "+vm.ProviderID, Unidentified, why, until)
		unclear++
		delete(s.next.Seen, id)
		delete(vms, id)
	}
	return vms, unclear
}

// suspicious says whether the unowned VMs speak against the machines.
func (s *step) suspicious(l Listing, unowned, listed int) (machinist.Hold, bool) {
	h := machinist.Hold{Subject: "class " + l.Class.String(), Until: s.now.Add(s.policy.Period)}
	switch {
	case unowned > 0 && s.owners.in[l.Class.Namespace] == 0 && !s.policy.EmptyInventory:
		h.Reason = Suspicious
		h.Message = fmt.Sprintf("%d VMs, and no machine in namespace %q", listed, l.Class.Namespace)
	case s.policy.tooMany(unowned, listed):
		h.Reason = Suspicious
		h.Message = fmt.Sprintf("%d unowned of %d VMs > %d %%, and > %d", unowned, listed, s.policy.MaxPercent, s.policy.AlwaysFew)
	default:
		return machinist.Hold{}, false
	}
	return h, true
}

// consider notes an unowned VM, and takes it for a candidate if it has been so
// for long enough.
func (s *step) consider(class types.NamespacedName, asOf time.Time, id string, vm VM, v verdict) {
	g := s.next.see(id, sighting{Class: class.String(), MachineName: vm.MachineName, Reason: v.unowned}, asOf)
	c := candidate{sighting: g, id: id, action: DeleteVM{
		ProviderID: vm.ProviderID, MachineName: vm.MachineName, Namespace: class.Namespace, Class: class.Name, Reason: v.unowned,
	}}
	if v.owner != nil {
		c.action.OwnerUID, c.action.OwnerProviderID = v.owner.UID, v.owner.Spec.ProviderID
	}
	if known, twice := s.ripe[id]; twice {
		c.action = known.action // the class that comes first
	}
	s.ripe[id] = c
}

// propose turns candidates into actions and holds, the longest known first.
func (s *step) propose() []Action {
	var actions []Action
	candidates := slices.SortedFunc(maps.Values(s.ripe), func(a, b candidate) int {
		return cmp.Or(a.Proposed.Compare(b.Proposed), a.First.Compare(b.First), cmp.Compare(a.id, b.id))
	})
	for _, c := range candidates {
		subject := "vm " + c.action.ProviderID
		seen := c.Last.Sub(c.First)
		limit := s.policy.MaxDeletions
		switch again := c.Proposed.Add(s.policy.Grace); {
		case seen < s.policy.Grace:
			s.hold(subject, WaitingForGrace, fmt.Sprintf("%s for %s of %s", c.Reason, seen, s.policy.Grace), c.First.Add(s.policy.Grace))
		case !c.Proposed.IsZero() && s.now.Before(again):
			s.hold(subject, DeletionProposed, string(c.Reason), again)
		case limit == 0:
			s.hold(subject, ReportOnly, string(c.Reason), s.now.Add(s.policy.Period))
		case len(s.next.Proposed) >= limit:
			s.hold(subject, RateLimited, fmt.Sprintf("%s; %d within %s", c.Reason, limit, s.policy.Period), s.next.Proposed[0].Add(s.policy.Period))
		default:
			actions = append(actions, c.action)
			s.next.Proposed = append(s.next.Proposed, s.now)
			c.Proposed = s.now
			s.next.Seen[c.id] = c.sighting
		}
	}
	return actions
}

// hold notes a hold. One that has ended means that the evidence is older than
// that: a new listing helps.
func (s *step) hold(subject string, r machinist.Reason, message string, until time.Time) {
	if !until.After(s.now) {
		until = s.now.Add(s.policy.Retry)
	}
	s.holds = append(s.holds, machinist.Hold{Subject: subject, Reason: r, Message: message, Until: until})
}

// sortHolds returns the holds in a total order, each once.
func sortHolds(holds []machinist.Hold) []machinist.Hold {
	slices.SortFunc(holds, func(a, b machinist.Hold) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), a.Until.Compare(b.Until))
	})
	return slices.Compact(holds)
}
