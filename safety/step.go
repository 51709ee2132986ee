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

// Step finds the VMs and side resources without a machine, and proposes to delete those
// that have been so for long enough. It returns what to remember for the next step; state
// is not changed. The package comment has the conditions for a deletion.
//
// A VM is protected by a machine with its provider ID, whatever the machine's
// name, and by a machine of its name without a provider ID, whose creation may
// be under way. Neither the phase of the machine nor whether it is being deleted
// plays a part. A VM under the name of a machine with another provider ID is a
// [SecondVM] if that other VM is listed as well, and in doubt otherwise.
// Provider IDs are compared as [nodeops.NormalizeProviderID] says.
//
// A side resource is protected by a machine of its name, by a machine with the provider
// ID of its VM, and by a listed VM of that name or ID.
//
// The order of listings, VMs and machines does not matter. For the same
// arguments the result is the same.
func Step(state State, in Observation, policy Policy, now time.Time) (State, Decision) {
	p := policy.withDefaults()
	s := step{Observation: in, policy: p, now: now, before: state.Seen, next: state.at(p, now), ripe: map[string]candidate{}}
	s.incomplete = !in.Machines.Complete || slices.Contains(in.Machines.Items, nil)
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
		if s.owners == nil {
			s.owners = ownersOf(in.Machines.Items)
			if s.next.Since.IsZero() {
				s.next.Since = now
			}
		}
		s.judge(l)
	}
	for _, f := range s.found { // only now that every listing had its say against
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
	policy     Policy
	now        time.Time
	incomplete bool    // the machines were not all read
	owners     *owners // nil until a listing can be trusted
	listed     *listedVMs
	before     map[string]sighting
	next       State
	found      []findings
	sides      []sideFindings
	ripe       map[string]candidate // by the key in the State
	holds      []machinist.Hold
}

// candidate is a VM or a side resource that could be deleted.
type candidate struct {
	sighting
	key, subject string
	namespace    string
	share        share
	reportOnly   bool // the driver cannot delete it
	action       func(message string) Action
}

// doubt returns why nothing can be concluded from a listing of which there are n,
// or a hold without a reason.
func (s *step) doubt(l Listing, n int) machinist.Hold {
	h := machinist.Hold{Subject: "class " + l.Class.String(), Until: s.now.Add(s.policy.retry())}
	machines := s.Machines
	switch {
	case n > 1:
		h.Reason, h.Message = ListingUnusable, fmt.Sprintf("%d listings", n)
	case l.Unsupported:
		return machinist.Hold{Subject: h.Subject, Reason: Unsupported, Message: "the driver cannot list VMs"}
	case !l.VMs.Complete:
		h.Reason, h.Message = ListingUnusable, cmp.Or(l.Problem, "not complete")
	case s.stale(l.VMs.AsOf):
		h.Reason, h.Message = ListingUnusable, s.age(l.VMs.AsOf)
	case s.incomplete:
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

func (s *step) stale(t time.Time) bool { return t.After(s.now) || s.now.Sub(t) > maxAge }

func (s *step) age(t time.Time) string {
	return fmt.Sprintf("%s old, at most %s", s.now.Sub(t), maxAge)
}

// consider notes an unowned VM, and takes it for a candidate.
func (s *step) consider(f findings, id string, v verdict) {
	vm := f.vms[id]
	a := DeleteVM{ProviderID: vm.ProviderID, MachineName: vm.MachineName, Namespace: f.class.Namespace, Class: f.class.Name, Reason: v.unowned}
	if v.owner != nil {
		a.OwnerUID, a.OwnerProviderID = v.owner.UID, v.owner.Spec.ProviderID
	}
	s.candidate(candidate{
		sighting: s.next.see(id, sighting{Class: f.class.String(), MachineName: vm.MachineName, Reason: v.unowned}, f.asOf),
		key:      id, subject: "vm " + vm.ProviderID, share: f.share, namespace: f.class.Namespace,
		action: func(message string) Action { a.Message = message; return a },
	})
}

// candidate takes what was seen for a candidate. Of one that several classes list, the
// first class counts.
func (s *step) candidate(c candidate) {
	if known, twice := s.ripe[c.key]; twice {
		known.sighting = c.sighting
		c = known
	}
	s.ripe[c.key] = c
}

// propose turns candidates into actions and holds, the longest known first.
func (s *step) propose() []Action {
	var actions []Action
	candidates := slices.SortedFunc(maps.Values(s.ripe), func(a, b candidate) int {
		return cmp.Or(a.Proposed.Compare(b.Proposed), a.First.Compare(b.First), cmp.Compare(a.key, b.key))
	})
	for _, c := range candidates {
		seen := c.Last.Sub(c.First)
		limit := s.policy.MaxDeletions
		switch again := c.Proposed.Add(s.policy.Grace); {
		case seen < s.policy.Grace || !s.before[c.key].First.Equal(c.First): // the machines were read once
			s.hold(c.subject, WaitingForGrace, fmt.Sprintf("%s for %s of %s", c.Reason, seen, s.policy.Grace), c.First.Add(s.policy.Grace))
		case !c.Proposed.IsZero() && s.now.Before(again):
			s.hold(c.subject, DeletionProposed, string(c.Reason), again)
		case limit == 0:
			s.hold(c.subject, ReportOnly, string(c.Reason), s.now.Add(s.policy.Period))
		case c.reportOnly:
			s.hold(c.subject, ReportOnly, fmt.Sprintf("%s of machine %s; the driver cannot delete side resources", c.Reason, c.MachineName), s.now.Add(s.policy.Period))
		case len(s.next.Proposed) >= limit:
			s.hold(c.subject, RateLimited, fmt.Sprintf("%s; %d within %s", c.Reason, limit, s.policy.Period), s.next.Proposed[0].Add(s.policy.Period))
		default:
			s.next.Proposed = append(s.next.Proposed, s.now)
			actions = append(actions, c.action(s.evidence(c)))
			c.Proposed = s.now
			s.next.Seen[c.key] = c.sighting
			s.next.delete(c, s.now)
		}
	}
	return actions
}

// evidence says what the proposal to delete a candidate rests on.
func (s *step) evidence(c candidate) string {
	return fmt.Sprintf("unowned in the listings from %s to %s; %s; %d machines were read; deletion %d of at most %d within %s",
		c.First.UTC().Format(time.RFC3339), c.Last.UTC().Format(time.RFC3339), c.share, len(s.Machines.Items), len(s.next.Proposed), s.policy.MaxDeletions, s.policy.Period)
}

// hold notes a hold. One that has ended means that the evidence is older than
// that: a new listing helps.
func (s *step) hold(subject string, r machinist.Reason, message string, until time.Time) {
	if !until.After(s.now) {
		until = s.now.Add(s.policy.retry())
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
