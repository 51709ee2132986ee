// SPDX-License-Identifier: Apache-2.0

package members

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Counts are the numbers of machines of one set. Creations, deletions, the status, rollouts and
// freezes all follow from these numbers.
//
// Machines = Present + Leaving. Of the present ones, Going are about to be deleted, and of the
// others Moving come from another set by an update in place. The rest is Eligible, except machines
// without a UID.
type Counts struct {
	// Desired is spec.replicas, and 0 if that is negative.
	Desired int
	// Machines is the number of all machines.
	Machines int
	// Leaving are the machines that are being deleted: see [Leaving]. They count for surge and not
	// for Desired.
	Leaving int
	// ShortLived are the leaving machines that were deleted within 10 minutes of their creation.
	ShortLived int
	// Present are the machines that are not leaving, including those whose deletion is not observed
	// yet.
	Present int
	// Going are the present machines whose deletion was requested and is not observed yet.
	Going int
	// Moving are the present machines that come from another set: see [Transferred]. They are not
	// chosen for deletion.
	Moving int
	// Eligible are the present machines that may be chosen for deletion: see [Eligible].
	Eligible int
	// InFlight are the creations that are not observed yet.
	InFlight int
	// Ready are the present machines, without Going, whose phase is Running.
	Ready int
	// Available are the present machines, without Going, that have been available for
	// minReadySeconds: see [AvailableSince]. Settling are those that are available for a shorter
	// time: see [NextAvailable].
	Available, Settling int
	// Updating are the present machines, without Going, that are being updated in place.
	Updating int
	// Failed are the present machines whose phase is Failed. PreservedFailed are those of them with
	// a preserve expiry time.
	Failed, PreservedFailed int
	// AutoPreserved are the present machines that the set preserves because they failed, and
	// AutoPreservedLeaving the leaving ones.
	AutoPreserved, AutoPreservedLeaving int
}

// Count returns the counts of a set. machines must be those of the set; nil machines are skipped,
// and the set may be nil. The counts depend on now only if the set has minReadySeconds.
func Count(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, e machine.Expectations, now time.Time) Counts {
	c := Counts{InFlight: len(e.Creates())}
	if set != nil {
		c.Desired = int(max(0, set.Spec.Replicas))
	}
	settle, asked := SettleTime(set), Deleting(e)
	for _, m := range machines {
		if m == nil {
			continue
		}
		c.Machines++
		if Leaving(m) {
			c.leaving(m)
		} else {
			c.present(m, asked[m.UID], settle, now)
		}
	}
	return c
}

// leaving counts one machine that is being deleted.
func (c *Counts) leaving(m *v1alpha1.Machine) {
	c.Leaving++
	if AutoPreserved(m) {
		c.AutoPreservedLeaving++
	}
	if ShortLived(m) {
		c.ShortLived++
	}
}

// present counts one machine that is not being deleted.
func (c *Counts) present(m *v1alpha1.Machine, going bool, settle time.Duration, now time.Time) {
	c.Present++
	if Failed(m) {
		c.Failed++
	}
	if PreservedFailed(m) {
		c.PreservedFailed++
	}
	if AutoPreserved(m) {
		c.AutoPreserved++
	}
	if going {
		c.Going++
		return
	}
	switch {
	case Transferred(m):
		c.Moving++
	case m.UID != "":
		c.Eligible++
	}
	switch m.Status.CurrentStatus.Phase { //nolint:exhaustive // the others are not counted by phase
	case v1alpha1.MachineRunning:
		c.Ready++
	case v1alpha1.MachineInPlaceUpdating:
		c.Updating++
	}
	if AvailableFor(m, settle, now) {
		c.Available++
	} else if Available(m) {
		c.Settling++
	}
}

// Missing returns how many machines have to be created: Desired - Present - InFlight, at least 0.
func (c Counts) Missing() int {
	return max(0, max(0, c.Desired)-max(0, c.Present)-max(0, c.InFlight))
}

// Surplus returns how many machines have to be deleted: Eligible - Desired, at least 0. Creations
// in flight do not count.
func (c Counts) Surplus() int {
	return max(0, max(0, c.Eligible)-max(0, c.Desired))
}

// Present returns the machines that are not leaving and whose deletion was not requested.
func Present(machines []*v1alpha1.Machine, e machine.Expectations) []*v1alpha1.Machine {
	asked := Deleting(e)
	out := make([]*v1alpha1.Machine, 0, len(machines))
	for _, m := range machines {
		if !Leaving(m) && !asked[m.UID] {
			out = append(out, m)
		}
	}
	return out
}

// Eligible returns the machines among which a set may choose for deletion: present, not moving to
// another set ([Transferred]), and with a UID. Nil machines are skipped.
func Eligible(machines []*v1alpha1.Machine, e machine.Expectations) []*v1alpha1.Machine {
	return slices.DeleteFunc(Present(machines, e), func(m *v1alpha1.Machine) bool { return Transferred(m) || m.UID == "" })
}

// Deleting returns the UIDs of machines whose deletion was requested and is not observed yet.
func Deleting(e machine.Expectations) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, x := range e.Deletes() {
		uids[x.UID] = true
	}
	return uids
}
