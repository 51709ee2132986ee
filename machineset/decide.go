// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Decide makes one pass over a set: which machines are created, which deleted,
// which follow a change of the template, and whether the finalizer comes or goes.
//
//   - A set which does not pass [Validate] is left alone unless it is deleted. [Status]
//     shows why, and one Event says so.
//   - Up to autoPreserveFailedMachineMax Failed machines are marked to be kept
//     before anything is deleted.
//   - If the set has fewer machines than it wants, counting those in flight and
//     not counting those that are leaving, it creates what is missing and
//     deletes nothing in this pass. Of machines that lost their labels and were
//     released, it replaces no more than 3 as long as they exist; of those that do not
//     live for 10 minutes, no more than it wants.
//   - If the set is frozen, or its scale-up is disabled, it creates nothing, and
//     goes on with the next rule. While the API servers do not answer
//     ([Observation.Freeze]), it creates nothing and replaces no Failed machine.
//   - Else it deletes what it has too much of, as [Choose] tells: machines that an
//     autoscaler named ([NamedByAutoscaler]), all of them; those that the set
//     names ([NameVictims]); others in the order of [Policy.Order]. And it
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
func Decide(in Observation, p Policy, now time.Time) Decision {
	d := &draft{now: now}
	if in.Set == nil {
		d.hold("", ReasonInvalid, "there is no MachineSet", time.Time{})
		return d.done()
	}
	if in.Set.DeletionTimestamp != nil && !slices.Contains(in.Set.Finalizers, v1alpha1.MCMFinalizerName) {
		return d.done()
	}
	machines, holds := ours(in)
	d.Holds = append(d.Holds, holds...)
	in.Expectations = expected(in.Expectations, in.Machines, in.Complete)
	refused := refusal(in.Set)
	switch {
	case in.Set.DeletionTimestamp != nil:
		if len(Validate(in.Set)) == 0 {
			d.sync(in.Set, machines, nil)
		}
		d.deleteSet(in, machines, p)
	case refused != "":
		d.hold(in.Set.Name, ReasonInvalid, refused, time.Time{})
		d.Events = refusalEvents(in.Set, refused)
	default:
		d.keepSet(in, machines, p)
	}
	return d.done()
}

// keepSet decides about a set that is to stay.
func (d *draft) keepSet(in Observation, machines []*v1alpha1.Machine, p Policy) {
	if !slices.Contains(in.Set.Finalizers, v1alpha1.MCMFinalizerName) {
		d.do(setFinalizer(in.Set))
	}
	if !in.Complete {
		d.sync(in.Set, machines, nil)
		d.look(in.Expectations, p.burst())
		d.hold(in.Set.Name, ReasonIncomplete, "the list of machines may not be whole", time.Time{})
		return
	}
	counts := Count(in.Set, machines, in.Expectations, d.now)
	eligible, holds := deletable(machines, deleting(in.Expectations))
	eligible = slices.DeleteFunc(eligible, Transferred)
	victims := surplus(in.Set, eligible, p.order(d.now))
	others := without(eligible, victims)
	preserved := preserve(int(in.Set.Spec.AutoPreserveFailedMachineMax)-counts.AutoPreserved, machines, others, in.Nodes)
	d.Holds = append(d.Holds, holds...)
	d.sync(in.Set, machines, preserved)
	d.look(in.Expectations, p.burst())
	d.settling(in, machines, counts.Settling)
	missing, holds := creations(in, machines, counts, d.now)
	d.Holds = append(d.Holds, holds...)
	if missing > 0 {
		d.do(Create{Count: min(missing, p.burst())})
		d.bounded(in.Set, missing, p.burst(), "created")
		return
	}
	replace, holds := failed(others, preserved, in.Nodes, d.now)
	d.Holds = append(d.Holds, holds...)
	if in.Freeze.Frozen && len(replace) > 0 {
		d.Holds = append(d.Holds, in.Freeze.Hold(d.now))
		replace = nil
	}
	d.deleteAll(in.Set, append(victims, replace...), p.burst())
}

// deleteSet decides about a set that is being deleted.
func (d *draft) deleteSet(in Observation, machines []*v1alpha1.Machine, p Policy) {
	d.look(in.Expectations, p.burst())
	if !in.Complete {
		d.hold(in.Set.Name, ReasonIncomplete, "the list of machines may not be whole", time.Time{})
		return
	}
	if len(machines) == 0 && len(in.Expectations.Creates()) == 0 {
		d.do(removeFinalizer(in.Set))
		return
	}
	eligible, holds := deletable(machines, deleting(in.Expectations))
	d.Holds = append(d.Holds, holds...)
	var victims []Delete
	for _, v := range p.order(d.now).First(eligible, len(eligible)) {
		victims = append(victims, Delete{Name: v.Machine.Name, UID: v.Machine.UID, Reason: ReasonSetDeleting})
	}
	d.deleteAll(in.Set, victims, p.burst())
	if len(machines) > 0 {
		d.hold(machines[0].Name, ReasonSetDeleting, fmt.Sprintf("%d machines left", len(machines)), time.Time{})
	}
}

// sync brings machines in line with the set: one write for each machine, be it
// for the template, for a preservation, or for both.
func (d *draft) sync(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, preserve map[types.UID]string) {
	for _, m := range machines {
		a, changed := syncFromTemplate(set, m)
		if value, found := preserve[m.UID]; found {
			a.Preserve, changed = new(value), true
		}
		if changed {
			d.do(a)
		}
	}
}

// look asks for live reads of what has been expected for too long.
func (d *draft) look(e machine.Expectations, burst int) {
	creates, deletes, old := e.Creates(), e.Deletes(), 0
	pending := slices.Concat(creates, deletes)
	for _, x := range pending {
		if due := x.At.Add(unseen); due.After(d.now) {
			d.wake(due)
		} else if old < burst {
			old++
			d.do(Look{Name: x.Name, UID: x.UID})
		}
	}
	if len(pending) > 0 {
		d.hold(pending[0].Name, ReasonNotSeen, fmt.Sprintf("%d creations and %d deletions have not shown up yet",
			len(creates), len(deletes)), d.pending)
	}
}

// settling says when the next of n machines will have been available for long enough:
// the status is to be written then.
func (d *draft) settling(in Observation, machines []*v1alpha1.Machine, n int) {
	if n == 0 {
		return
	}
	if m, at := NextAvailable(present(machines, in.Expectations), settleTime(in.Set), d.now); m != nil {
		d.hold(m.Name, ReasonSettling, fmt.Sprintf("%d machines do not count as available before they have been so for minReadySeconds", n), at)
	}
}

func (d *draft) deleteAll(set *v1alpha1.MachineSet, victims []Delete, burst int) {
	for _, v := range victims[:min(len(victims), burst)] {
		d.do(v)
	}
	d.bounded(set, len(victims), burst, "deleted")
}

func (d *draft) bounded(set *v1alpha1.MachineSet, n, burst int, what string) {
	if n > burst {
		d.hold(set.Name, ReasonLimited, fmt.Sprintf("%d of %d machines are %s in this pass", burst, n, what), time.Time{})
	}
}
