// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Counts are the machines of one set, each counted as what it is. There is no
// other arithmetic: what is created and deleted, what the status says, how a
// deployment shares out its replicas and what a freeze looks at are all made of
// these numbers.
//
// Machines = Present + Leaving. Of those present, Going are about to leave, and
// of the others Moving belong to an update in place that has just ended. The rest
// is Eligible, but for machines without a UID.
type Counts struct {
	// Desired is what the set wants. Below 0 counts as 0.
	Desired int
	// Machines are all that exist.
	Machines int
	// FullyLabeled are those of them that carry all labels of the template.
	FullyLabeled int
	// Leaving are those visibly on their way out; see [Leaving]. They count towards
	// a surge, and not towards what a set wants.
	Leaving int
	// ShortLived are those leaving that were deleted within 10 minutes of their
	// creation.
	ShortLived int
	// Present are the others. Those whose deletion is in flight are present until it
	// shows.
	Present int
	// Going are the present ones whose deletion is in flight.
	Going int
	// Moving are those that were updated in place and have just come from another
	// set; see [Transferred]. They are never chosen for deletion.
	Moving int
	// Eligible are the present ones that may be chosen for deletion; see [Eligible].
	Eligible int
	// InFlight are creations which do not show yet.
	InFlight int
	// Ready are those present, and not Going, that are Running.
	Ready int
	// Available are those present, and not Going, that have been available for as
	// long as the set asks; see [AvailableSince]. Settling are those that are
	// available and have not been so for long enough; see [NextAvailable].
	Available, Settling int
	// Updating are those present, and not Going, that are being updated in place.
	Updating int
	// Failed are those present whose phase is Failed, PreservedFailed those of them
	// that are preserved; see [PreservedFailed].
	Failed, PreservedFailed int
	// AutoPreserved are those present that the set preserves of its own accord, and
	// AutoPreservedLeaving those on their way out that it did.
	AutoPreserved, AutoPreservedLeaving int
}

// Count counts the machines of a set. The list must hold them and nothing else;
// nil machines are skipped, and the set may be nil. The counts depend on the time
// only if the set has minReadySeconds.
func Count(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, e machine.Expectations, now time.Time) Counts {
	c := Counts{InFlight: len(e.Creates())}
	var template []label
	if set != nil {
		c.Desired = int(max(0, set.Spec.Replicas))
		template = labelsOf(set.Spec.Template.Labels)
	}
	settle, asked := settleTime(set), deleting(e)
	for _, m := range machines {
		if m == nil {
			continue
		}
		c.Machines++
		if carries(m.Labels, template) {
			c.FullyLabeled++
		}
		if Leaving(m) {
			c.leaving(m)
		} else {
			c.present(m, asked[m.UID], settle, now)
		}
	}
	return c
}

// leaving counts one machine that is on its way out.
func (c *Counts) leaving(m *v1alpha1.Machine) {
	c.Leaving++
	if autoPreserved(m) {
		c.AutoPreservedLeaving++
	}
	if shortLived(m) {
		c.ShortLived++
	}
}

// present counts one machine that is not on its way out.
func (c *Counts) present(m *v1alpha1.Machine, going bool, settle time.Duration, now time.Time) {
	c.Present++
	if Failed(m) {
		c.Failed++
	}
	if preservedFailed(m) {
		c.PreservedFailed++
	}
	if autoPreserved(m) {
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
	} else if available(m) {
		c.Settling++
	}
}

// Missing returns how many machines are to be created. What is present and in
// flight never exceeds what is desired by it.
func (c Counts) Missing() int {
	return max(0, max(0, c.Desired)-max(0, c.Present)-max(0, c.InFlight))
}

// Surplus returns how many machines are too many. Creations in flight are not
// part of it: they can be deleted once they show.
func (c Counts) Surplus() int {
	return max(0, max(0, c.Eligible)-max(0, c.Desired))
}

// present returns the machines that are neither leaving nor about to.
func present(machines []*v1alpha1.Machine, e machine.Expectations) []*v1alpha1.Machine {
	asked := deleting(e)
	out := make([]*v1alpha1.Machine, 0, len(machines))
	for _, m := range machines {
		if !Leaving(m) && !asked[m.UID] {
			out = append(out, m)
		}
	}
	return out
}

// Missing returns how many machines sets want that do not exist. It is what
// [machine.Siblings] asks for: between the end of a machine and the creation of the
// one in its place nothing else tells that it is being replaced. Machines on their
// way out exist until they are gone.
//
// The machines may be those of other sets, too; they belong to the set that controls
// them. Sets that create none count for nothing: those which are being deleted, or
// may not create machines (see [ScaleUpDisabled]). Nil sets and machines are skipped.
func Missing(sets []*v1alpha1.MachineSet, machines []*v1alpha1.Machine) int {
	exist := map[types.UID]int{}
	for _, m := range machines {
		if m == nil {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
			exist[owner.UID]++
		}
	}
	n := 0
	for _, s := range sets {
		if s != nil && s.DeletionTimestamp == nil && !ScaleUpDisabled(s) {
			n += max(0, int(s.Spec.Replicas)-exist[s.UID])
		}
	}
	return n
}

// Eligible returns the machines among which a set may choose if it has too many:
// those that are neither leaving nor about to, that do not move to another set
// ([Transferred]), and that have a UID. Nil machines are skipped.
func Eligible(machines []*v1alpha1.Machine, e machine.Expectations) []*v1alpha1.Machine {
	return slices.DeleteFunc(present(machines, e), func(m *v1alpha1.Machine) bool { return Transferred(m) || m.UID == "" })
}

// label is one entry of a map that is asked for once for every machine: going
// through a list is several times as fast as through a map.
type label struct{ key, value string }

func labelsOf(labels map[string]string) []label {
	list := make([]label, 0, len(labels))
	for key, value := range labels {
		list = append(list, label{key, value})
	}
	return list
}

func carries(have map[string]string, want []label) bool {
	for _, l := range want {
		if value, found := have[l.key]; !found || value != l.value {
			return false
		}
	}
	return true
}
