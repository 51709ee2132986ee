// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Decide returns the decision for one set: which machines are created and deleted, which are
// updated to the template, and whether the finalizer is added or removed.
//
//   - An invalid set ([ReasonInvalid]) is not changed, unless it is being deleted. [Status] and one
//     Event say why.
//   - Up to autoPreserveFailedMachineMax Failed machines are preserved before anything is deleted.
//   - If fewer machines are present or in flight than desired, the missing ones are created, and
//     none is deleted in this decision. Of released machines, at most 3 are replaced while they
//     exist. Of machines that live shorter than 10 minutes, at most as many as are desired.
//   - A set that is frozen, or whose scale-up is disabled, creates none and continues with the next
//     rule. While the API servers do not answer ([Observation.Freeze]), no machine is created and
//     no Failed machine is replaced.
//   - Otherwise surplus machines are deleted: all that an autoscaler named, then those that the
//     annotation machinist.dev/delete-first names, then others by [Policy.Order]. Failed machines
//     are deleted if [ReplaceFailed] says so. A machine whose deletion was requested is not chosen
//     again, and counts as present for creations until the deletion is observed.
//   - Before anything is created or deleted, or a new generation is observed, for the first time in the
//     life of a process, a live list is requested: see [Observation].Proven.
//   - A set that is being deleted deletes all its machines. Its finalizer is removed when there is
//     no machine and no creation in flight.
//
// Machines that move to another set after an update in place count as present and are not chosen,
// except if their set is being deleted.
//
// The result does not depend on the order of the machines. It shares no memory with the observation,
// except the objects that its actions name as observed.
func Decide(in Observation, p Policy, now time.Time) Decision {
	d := &draft{now: now}
	if in.Set == nil {
		d.hold("machineset", ReasonInvalid, "there is no MachineSet", time.Time{})
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
		if len(validate(in.Set)) == 0 {
			d.sync(in.Set, machines, nil)
		}
		d.deleteSet(in, machines, p)
	case refused != "":
		d.hold(subjectOf(in.Set), ReasonInvalid, refused, time.Time{})
		d.Events = refusalEvents(in.Set, refused)
	default:
		d.keepSet(in, machines, p)
	}
	return d.done()
}

// keepSet decides about a set that is not being deleted.
func (d *draft) keepSet(in Observation, machines []*v1alpha1.Machine, p Policy) {
	if !slices.Contains(in.Set.Finalizers, v1alpha1.MCMFinalizerName) {
		d.do(addFinalizer(in.Set))
	}
	if slices.Contains(in.Set.Finalizers, v1alpha1.MCMFinalizerName) && facts.RetryAsked(in.Set) {
		defer func() { d.do(withoutRetry(in.Set)) }() // after the machines
	}
	if d.incomplete(in) || d.unprovenGeneration(in) {
		d.sync(in.Set, machines, nil)
		d.look(in.Expectations, p.burst())
		return
	}
	counts := members.Count(in.Set, machines, in.Expectations, d.now)
	eligible, holds := deletable(machines, members.Deleting(in.Expectations))
	eligible = slices.DeleteFunc(eligible, members.Transferred)
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
		if d.unproven(in) {
			return
		}
		d.do(machinist.Create{Object: newMachine(in.Set), Count: min(missing, p.burst())})
		d.bounded(in.Set, missing, p.burst(), "created")
		return
	}
	replace, holds := failed(others, preserved, in.Nodes, d.now)
	d.Holds = append(d.Holds, holds...)
	if in.Freeze.Frozen && len(replace) > 0 {
		d.Holds = append(d.Holds, in.Freeze.Hold(d.now))
		replace = nil
	}
	if victims = append(victims, replace...); len(victims) == 0 || !d.unproven(in) {
		d.deleteAll(in.Set, victims, p.burst())
	}
}

// incomplete reports whether the machines of a set may not be all that exist, or be older than those
// of a live list, and adds a hold for the first.
func (d *draft) incomplete(in Observation) bool {
	if !in.Complete {
		d.hold(subjectOf(in.Set), reasonIncomplete, "the list of machines may be incomplete", time.Time{})
	}
	return !in.Complete || len(in.Expectations.Updates()) > 0
}

// proven reports whether the machines are no older than the last write of an earlier process. For a set
// without the finalizer there was no such write.
func proven(in Observation) bool {
	return in.Proven || !slices.Contains(in.Set.Finalizers, v1alpha1.MCMFinalizerName)
}

// unproven reports whether the machines are not [proven], and then requests a live list.
func (d *draft) unproven(in Observation) bool {
	if proven(in) {
		return false
	}
	d.do(allMachines)
	d.hold(subjectOf(in.Set), reasonIncomplete, "the list of machines may be older than the last write of an earlier process", d.now.Add(time.Second))
	return true
}

// unprovenGeneration reports whether the machines are not proven, and [Status] would observe a new generation.
func (d *draft) unprovenGeneration(in Observation) bool {
	return in.Set.Status.ObservedGeneration != in.Set.Generation && d.unproven(in)
}

// deleteSet decides about a set that is being deleted.
func (d *draft) deleteSet(in Observation, machines []*v1alpha1.Machine, p Policy) {
	d.look(in.Expectations, p.burst())
	if d.incomplete(in) || d.unprovenGeneration(in) {
		return
	}
	if len(machines) == 0 && len(in.Expectations.Creates()) == 0 {
		if !d.unproven(in) {
			d.do(removeFinalizer(in.Set))
		}
		return
	}
	eligible, holds := deletable(machines, members.Deleting(in.Expectations))
	d.Holds = append(d.Holds, holds...)
	var victims []machinist.Delete
	for _, v := range p.order(d.now).First(eligible, len(eligible)) {
		victims = append(victims, deletion(v.Machine, reasonSetDeleting, ""))
	}
	if len(victims) > 0 && d.unproven(in) {
		return
	}
	d.deleteAll(in.Set, victims, p.burst())
	if len(machines) > 0 {
		d.hold(machineSubject(machines[0].Name), reasonSetDeleting, fmt.Sprintf("machines left: %d", len(machines)), time.Time{})
	}
}

// sync updates machines to the template and to the preservation, with one write per machine.
func (d *draft) sync(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, preserve map[types.UID]string) {
	for _, m := range machines {
		u := syncFromTemplate(set, m)
		if value, found := preserve[m.UID]; found {
			setPreserve(&u, m, value)
		}
		if facts.RetryAsked(set) && facts.PassesRetryOn(m) {
			metav1.SetMetaDataAnnotation(&edit(&u, m, "retry now").ObjectMeta, v1alpha1.RetryNowAnnotation, set.Annotations[v1alpha1.RetryNowAnnotation])
		}
		if len(u.Changes) > 0 {
			d.do(u)
		}
	}
}

// look adds live reads of machines whose creation or deletion has not been observed for too long.
func (d *draft) look(e machine.Expectations, burst int) {
	creates, deletes, updates, old := e.Creates(), e.Deletes(), e.Updates(), 0
	pending := slices.Concat(creates, deletes, updates)
	for _, x := range pending {
		if due := x.At.Add(unseen); due.After(d.now) {
			d.wake(due)
		} else if old < burst {
			old++
			d.do(machinist.Refresh{Kind: v1alpha1.MachineKind, Name: x.Name})
		}
	}
	if len(pending) > 0 {
		text := fmt.Sprintf("not observed yet: creations %d, deletions %d", len(creates), len(deletes))
		if len(updates) > 0 {
			text += fmt.Sprintf(", updates %d", len(updates))
		}
		d.hold(machineSubject(pending[0].Name), reasonNotSeen, text, d.pending)
	}
}

// settling adds a hold until the next of n machines has been available for minReadySeconds. The
// status has to be written then.
func (d *draft) settling(in Observation, machines []*v1alpha1.Machine, n int) {
	if n == 0 {
		return
	}
	if m, at := members.NextAvailable(members.Present(machines, in.Expectations), members.SettleTime(in.Set), d.now); m != nil {
		d.hold(machineSubject(m.Name), reasonSettling, fmt.Sprintf("available for less than minReadySeconds: %d", n), at)
	}
}

func (d *draft) deleteAll(set *v1alpha1.MachineSet, victims []machinist.Delete, burst int) {
	for _, v := range victims[:min(len(victims), burst)] {
		d.do(v)
	}
	d.bounded(set, len(victims), burst, "deleted")
}

func (d *draft) bounded(set *v1alpha1.MachineSet, n, burst int, what string) {
	if n > burst {
		d.hold(subjectOf(set), reasonLimited, fmt.Sprintf("%d of %d machines are %s in one pass", burst, n, what), time.Time{})
	}
}
