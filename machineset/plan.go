// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Plan makes one pass over a set: which machines are created, which deleted,
// which follow a change of the template, and whether the finalizer comes or goes.
//
//   - A set which does not pass [Validate] is left alone unless it is deleted.
//   - Up to autoPreserveFailedMachineMax Failed machines are marked to be kept
//     ([AutoPreserve]) before anything is deleted.
//   - If the set has fewer machines than it wants, counting those in flight and
//     not counting those that are leaving, it creates what is missing and
//     deletes nothing in this pass. Of machines that lost their labels and were
//     released, it replaces no more than [Policy.Replaced] as long as they exist;
//     of those that do not live for [ShortLife], no more than it wants.
//   - If the set is frozen, or its scale-up is disabled, it creates nothing, and
//     goes on with the next rule.
//   - Else it deletes what it has too much of, as [Choose] tells: machines that an
//     autoscaler named ([NamedByAutoscaler]), all of them; those that the set
//     names ([VictimsAnnotation]); others in the order of [Policy.Order]. And it
//     deletes every Failed machine that [ReplaceFailed] lets go. A machine that is
//     leaving, or whose deletion is in flight, is none of these: it was chosen
//     before, and counts as gone already for the choice, though not, before that
//     shows, for a creation.
//   - If the set is being deleted, it deletes all its machines, and lets its
//     finalizer go when none is left, and none in flight.
//
// Machines that have been updated in place and move to another set
// ([Transferred]) count as present and are never chosen, except when their set is
// deleted.
//
// The result does not depend on the order of the machines, and shares nothing
// with the observation.
func Plan(in Observation, p Policy, now time.Time) Decision {
	s := pass{in: in, policy: p.withDefaults(), now: now}
	switch {
	case in.Set == nil:
		s.hold("", ReasonNoSet, "nothing to decide about", time.Time{})
		return s.done()
	case in.Set.DeletionTimestamp != nil && !HasFinalizer(in.Set):
		return Decision{Reason: ReasonGone}
	}
	s.observe()
	problems := Validate(in.Set)
	switch {
	case in.Set.DeletionTimestamp != nil:
		if len(problems) == 0 {
			s.sync(nil)
		}
		s.deleteSet()
	case len(problems) > 0:
		s.hold(in.Set.Name, ReasonInvalid, problems.ToAggregate().Error(), time.Time{})
	case in.Set.UID == "":
		s.hold(in.Set.Name, ReasonInvalid, "metadata.uid is empty", time.Time{})
	default:
		s.keepSet()
	}
	return s.done()
}

// pass is one run of Plan.
type pass struct {
	in       Observation
	policy   Policy
	now      time.Time
	machines []*v1alpha1.Machine
	counts   Counts
	asked    map[types.UID]bool // deletions in flight
	d        Decision
	pending  time.Time // earliest next look at something in flight
}

// observe sorts out the machines of the set, and what is in flight of them.
func (s *pass) observe() {
	var holds []machinist.Hold
	s.machines, holds = ours(s.in)
	s.d.Holds = append(s.d.Holds, holds...)
	s.in.Expectations = expected(s.in.Expectations, s.in.Machines, s.in.Complete)
	s.asked = deleting(s.in.Expectations)
	s.counts = Count(s.in.Set, s.machines, s.in.Expectations, s.now)
}

// keepSet decides about a set that is to stay.
func (s *pass) keepSet() {
	if edit, ok := WithFinalizer(s.in.Set); ok {
		s.do(AddFinalizer{Edit: edit})
	}
	if !s.in.Complete {
		s.sync(nil)
		s.look()
		s.incomplete()
		return
	}
	eligible := s.eligible()
	victims := s.surplus(eligible)
	preserve := s.preserve(eligible, victims)
	s.sync(preserve)
	s.look()
	s.settling()
	if missing := s.worthwhile(s.missing()); missing > 0 {
		s.do(Create{Count: min(missing, s.policy.Burst)})
		s.burst(missing, "created")
		return
	}
	s.deleteAll(append(victims, s.failed(eligible, victims, preserve)...))
}

// missing returns how many machines are to be created, and says why not all that
// are missing.
func (s *pass) missing() int {
	set, missing := s.in.Set, s.counts.Missing()
	if missing == 0 {
		return 0
	}
	if Frozen(set) {
		s.hold(set.Name, ReasonFrozen, fmt.Sprintf("%d machines missing, label %s", missing, v1alpha1.FreezeLabelKey), time.Time{})
		return 0
	}
	if ScaleUpDisabled(set) {
		s.hold(set.Name, ReasonScaleUpDisabled, fmt.Sprintf("%d machines missing, label %s", missing, v1alpha1.LabelKeyMachineSetScaleUpDisabled), time.Time{})
		return 0
	}
	released := releasedBy(set, s.in.Released)
	limit := s.policy.Replaced - len(released)
	allowed := max(0, min(missing, missing+limit))
	if allowed < missing {
		s.hold(released[0].Name, ReasonReleased, fmt.Sprintf("%d of %d missing machines are not created: %d that lost their labels and were released still exist, and %d of those are replaced",
			missing-allowed, missing, len(released), s.policy.Replaced), time.Time{})
	}
	return allowed
}

// settling says when the next machine will have been available for long enough:
// the status is to be written then.
func (s *pass) settling() {
	if s.counts.Settling == 0 {
		return
	}
	if m, at := NextAvailable(Present(s.machines, s.in.Expectations), settleTime(s.in.Set), s.now); m != nil {
		s.hold(m.Name, ReasonSettling, fmt.Sprintf("%d machines do not count as available before they have been so for minReadySeconds", s.counts.Settling), at)
	}
}

// deleteSet decides about a set that is being deleted.
func (s *pass) deleteSet() {
	s.look()
	if !s.in.Complete {
		s.incomplete()
		return
	}
	if s.counts.Machines == 0 && s.counts.InFlight == 0 {
		if edit, ok := WithoutFinalizer(s.in.Set); ok {
			s.do(RemoveFinalizer{Edit: edit})
		}
		return
	}
	var victims []Delete
	for _, v := range s.policy.order(s.now).First(s.deletable(), len(s.machines)) {
		victims = append(victims, Delete{Name: v.Machine.Name, UID: v.Machine.UID, Reason: ReasonSetDeleting})
	}
	s.deleteAll(victims)
	if len(s.machines) > 0 {
		s.hold(s.machines[0].Name, ReasonWaitingForMachines, fmt.Sprintf("%d machines left", len(s.machines)), time.Time{})
	}
}

// sync brings machines in line with the set: one write for each machine, be it
// for the template, for a preservation, or for both.
func (s *pass) sync(preserve map[types.UID]string) {
	for _, m := range s.machines {
		a, changed := SyncFromTemplate(s.in.Set, m)
		if value, found := preserve[m.UID]; found {
			a.Preserve, changed = new(value), true
		}
		if changed {
			s.do(a)
		}
	}
}

// look asks after what has been in flight for too long.
func (s *pass) look() {
	old := 0
	creates, deletes := s.in.Expectations.Creates(), s.in.Expectations.Deletes()
	pending := slices.Concat(creates, deletes)
	for _, x := range pending {
		if due := x.At.Add(s.policy.Unseen); due.After(s.now) {
			s.wake(due)
		} else if old < s.policy.Burst {
			old++
			s.do(Look{Name: x.Name, UID: x.UID, Reason: ReasonNotSeen})
		}
	}
	if len(pending) > 0 {
		s.hold(pending[0].Name, ReasonInFlight, fmt.Sprintf("%d creations and %d deletions have not shown up yet",
			len(creates), len(deletes)), s.pending)
	}
}

func (s *pass) deleteAll(victims []Delete) {
	for _, v := range victims[:min(len(victims), s.policy.Burst)] {
		s.do(v)
	}
	s.burst(len(victims), "deleted")
}

func (s *pass) burst(n int, what string) {
	if n > s.policy.Burst {
		s.hold(s.in.Set.Name, ReasonBurst, fmt.Sprintf("%d of %d machines are %s in this pass", s.policy.Burst, n, what), time.Time{})
	}
}

func (s *pass) incomplete() {
	s.hold(s.in.Set.Name, ReasonIncomplete, "the list of machines may not be whole", time.Time{})
}

func (s *pass) holdFailed(m *v1alpha1.Machine, reason machinist.Reason) {
	var until time.Time
	switch reason { //nolint:exhaustive // the others end with a change of the machine
	case ReasonPreserved:
		until = m.Status.CurrentStatus.PreserveExpiryTime.Time
	case ReasonNodeReadyAgain:
		until = mayRecoverUntil(m, s.in.Nodes[m.Labels[v1alpha1.NodeLabelKey]], s.now)
	}
	s.hold(m.Name, reason, "machine is Failed and stays", until)
}

func (s *pass) do(a Action) { s.d.Actions = append(s.d.Actions, a) }

func (s *pass) hold(subject string, reason machinist.Reason, message string, until time.Time) {
	s.d.Holds = append(s.d.Holds, machinist.Hold{Subject: subject, Reason: reason, Message: message, Until: until})
}
