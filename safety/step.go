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
)

// Step decides which VMs and side resources without a machine are deleted. It returns the
// state for the next call and does not change its arguments. The package comment has the
// conditions for a deletion.
//
// A VM is protected by a machine with its provider ID, in any phase. It is also protected by
// a machine with its name and no provider ID, which may be under creation. If the machine
// with its name has another listed VM, the VM is deleted as
// "SecondVM". If that other VM is not listed, it is held with the reason "InDoubt". [nodeops.NormalizeProviderID] compares provider IDs.
//
// A side resource is protected by a machine with its machine name or provider ID, and by a
// listed VM with that name or ID.
//
// The actions are [DeleteVM] and [DeleteSideResource]. They are independent of each other. New
// deletions come first, ordered by the time of the first listing. Events are about classes.
// NextCheck is when to list again; zero means that nothing can be listed.
//
// The order of listings, VMs and machines does not matter.
func Step(state State, in Observation, policy Policy, now time.Time) (State, Decision[machinist.Action]) {
	p := policy.withDefaults()
	s := step{Observation: in, policy: p, now: now, before: state.Seen, next: state.at(p, now), candidates: map[string]candidate{}}
	s.held = maps.Clone(s.next.Held)
	s.incomplete = !in.Machines.Complete || slices.Contains(in.Machines.Items, nil)
	count := map[types.NamespacedName]int{}
	for _, l := range in.Listings {
		count[l.Class]++
	}
	listings := slices.SortedFunc(slices.Values(in.Listings), func(a, b Listing) int {
		return cmp.Or(cmp.Compare(a.Class.Namespace, b.Class.Namespace), cmp.Compare(a.Class.Name, b.Class.Name))
	})
	for _, l := range listings {
		if h := s.unusable(l, count[l.Class]); h.Reason != "" {
			s.holds = append(s.holds, h)
			continue
		}
		if s.owners == nil {
			s.owners = ownersOf(in.Machines.Items)
			if s.next.Since.IsZero() {
				s.next.Since = now
			}
		}
		s.judge(l)
	}
	for _, f := range s.found { // after every listing was compared with the records
		for id, v := range f.unowned {
			s.consider(f, id, v)
		}
	}
	for _, f := range s.sides {
		for key, r := range f.resources {
			s.considerSide(f, key, r)
		}
	}
	s.reportNodes()
	d := Decision[machinist.Action]{Actions: s.propose(), Events: s.events}
	d.Holds = sortHolds(s.holds)
	for _, h := range d.Holds {
		d.NextCheck = machinist.Earliest(d.NextCheck, h.Until)
	}
	if len(s.found) > 0 {
		d.NextCheck = machinist.Earliest(d.NextCheck, now.Add(p.Period))
	}
	return s.next.compact(), d
}

// step holds the intermediate results of one [Step].
type step struct {
	Observation
	policy     Policy
	now        time.Time
	incomplete bool    // the list of machines is incomplete
	owners     *owners // nil until a listing is usable
	listed     *listedVMs
	before     map[string]unownedRecord
	next       State
	found      []findings
	sides      []sideFindings
	candidates map[string]candidate // by the key in the State
	holds      []machinist.Hold
	held       map[string]heldClass // before this step
	events     []machinist.Event
}

// candidate is a VM or side resource without an owner.
type candidate struct {
	unownedRecord
	key, subject string
	namespace    string
	share        share
	reportOnly   bool // the driver cannot delete it
	action       func(message string) machinist.Action
}

// unusable returns the hold of a listing that cannot be used, or a hold without a reason. n
// is the number of listings of its class.
func (s *step) unusable(l Listing, n int) machinist.Hold {
	h := machinist.Hold{Subject: classSubject(l.Class), Until: s.now.Add(s.policy.retry())}
	machines := s.Machines
	switch {
	case n > 1:
		h.Reason, h.Message = listingUnusable, fmt.Sprintf("there are %d listings of the class; one is expected", n)
	case l.Unsupported:
		return machinist.Hold{Subject: h.Subject, Reason: unsupported, Message: "the driver cannot list VMs"}
	case !l.VMs.Complete:
		h.Reason, h.Message = listingUnusable, cmp.Or(l.Problem, "the listing is incomplete")
	case s.stale(l.VMs.AsOf):
		h.Reason, h.Message = listingUnusable, s.age("listing", l.VMs.AsOf)
	case s.incomplete:
		h.Subject, h.Reason, h.Message = "machines", machinesUnusable, "the list of machines is incomplete"
	case s.stale(machines.AsOf):
		h.Subject, h.Reason, h.Message = "machines", machinesUnusable, s.age("list of machines", machines.AsOf)
	case machines.AsOf.Before(l.VMs.AsOf):
		h.Reason = machinesUnusable
		h.Message = fmt.Sprintf("the machines were read %s before the VMs", l.VMs.AsOf.Sub(machines.AsOf))
	case s.Namespace == "" || s.Namespace != AllNamespaces && s.Namespace != l.Class.Namespace:
		h.Reason, h.Message = machinesUnusable, fmt.Sprintf("only the machines of namespace %q were read", s.Namespace)
	}
	return h
}

func (s *step) stale(t time.Time) bool { return t.After(s.now) || s.now.Sub(t) > maxAge }

// age describes a stale list.
func (s *step) age(list string, t time.Time) string {
	if t.After(s.now) {
		return fmt.Sprintf("the %s is %s in the future", list, t.Sub(s.now))
	}
	return fmt.Sprintf("the %s is %s old; at most %s is allowed", list, s.now.Sub(t), maxAge)
}

// consider records a VM without a machine and adds it to the candidates.
func (s *step) consider(f findings, id string, v ownership) {
	vm := f.vms[id]
	a := DeleteVM{ProviderID: vm.ProviderID, MachineName: vm.MachineName, Namespace: f.class.Namespace, Class: f.class.Name, Reason: v.unowned}
	if v.owner != nil {
		a.OwnerUID, a.OwnerProviderID = v.owner.UID, v.owner.Spec.ProviderID
	}
	s.addCandidate(candidate{
		unownedRecord: s.next.see(id, unownedRecord{Class: f.class.String(), MachineName: vm.MachineName, Reason: v.unowned}, f.asOf),
		key:           id, subject: "vm/" + vm.ProviderID, share: f.share, namespace: f.class.Namespace,
		action: func(message string) machinist.Action { a.Message = message; return a },
	})
}

// addCandidate adds a candidate. If several classes list it, the first class counts.
func (s *step) addCandidate(c candidate) {
	if known, twice := s.candidates[c.key]; twice {
		known.unownedRecord = c.unownedRecord
		c = known
	}
	s.candidates[c.key] = c
}

// propose returns the actions for the candidates, the longest known first, and holds the
// others.
func (s *step) propose() []machinist.Action {
	var actions []machinist.Action
	candidates := slices.SortedFunc(maps.Values(s.candidates), func(a, b candidate) int {
		return cmp.Or(a.Proposed.Compare(b.Proposed), a.First.Compare(b.First), cmp.Compare(a.key, b.key))
	})
	for _, c := range candidates {
		seen := c.Last.Sub(c.First)
		limit := s.policy.MaxDeletions
		switch again := c.Proposed.Add(s.policy.Grace); {
		case seen < s.policy.Grace || !s.before[c.key].First.Equal(c.First): // the machines were read once
			s.hold(c.subject, waitingForGrace, fmt.Sprintf("%s for %s; the grace is %s", c.Reason, seen, s.policy.Grace), c.First.Add(s.policy.Grace))
		case !c.Proposed.IsZero() && s.now.Before(again):
			s.hold(c.subject, deletionProposed, fmt.Sprintf("%s; the deletion was proposed at %s and is repeated after %s", c.Reason, c.Proposed.UTC().Format(time.RFC3339), s.policy.Grace), again)
		case limit == 0:
			s.hold(c.subject, reportOnly, fmt.Sprintf("%s; the policy deletes nothing", c.Reason), s.now.Add(s.policy.Period))
		case c.reportOnly:
			s.hold(c.subject, reportOnly, fmt.Sprintf("%s of machine %s; the driver cannot delete side resources", c.Reason, c.MachineName), s.now.Add(s.policy.Period))
		case len(s.next.Proposed) >= limit:
			s.hold(c.subject, rateLimited, fmt.Sprintf("%s; at most %d deletions within %s are allowed", c.Reason, limit, s.policy.Period), s.next.Proposed[0].Add(s.policy.Period))
		default:
			s.next.Proposed = append(s.next.Proposed, s.now)
			actions = append(actions, c.action(s.evidence(c)))
			c.Proposed = s.now
			s.next.Seen[c.key] = c.unownedRecord
			s.next.delete(c, s.now)
		}
	}
	return actions
}

// evidence describes why a candidate is deleted.
func (s *step) evidence(c candidate) string {
	return fmt.Sprintf("without a machine in the listings from %s to %s; %s; machines read: %d; deletion %d of at most %d within %s",
		c.First.UTC().Format(time.RFC3339), c.Last.UTC().Format(time.RFC3339), c.share, len(s.Machines.Items), len(s.next.Proposed), s.policy.MaxDeletions, s.policy.Period)
}

// hold adds a hold. If until is over, a new listing is needed soon.
func (s *step) hold(subject string, r machinist.Reason, message string, until time.Time) {
	if !until.After(s.now) {
		until = s.now.Add(s.policy.retry())
	}
	s.holds = append(s.holds, machinist.Hold{Subject: subject, Reason: r, Message: message, Until: until})
}

// sortHolds returns the holds sorted and without duplicates.
func sortHolds(holds []machinist.Hold) []machinist.Hold {
	slices.SortFunc(holds, func(a, b machinist.Hold) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), a.Until.Compare(b.Until))
	})
	return slices.Compact(holds)
}
