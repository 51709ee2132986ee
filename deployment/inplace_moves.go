// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// move gives finished machines to the new set, as many as it may have, and says
// whether there are any. A set that might still replace a machine which leaves it
// keeps them until it is known not to.
func (u *updates) move() bool {
	room, moved := u.l.Desired-u.has(), false
	for _, o := range u.units {
		if o.stage != updateDone || !o.old() || machineset.Failed(o.machine) || room <= 0 {
			continue
		}
		next := movedMachine(o.machine, o.of.set, u.to.set)
		switch {
		case !machineset.ScaleUpDisabled(o.of.set):
			u.c.hold("machineset/"+o.of.set.Name, ReasonUpdating, fmt.Sprintf("%s is updated; it moves when its set can no longer replace it", o.machine.Name))
		case !selects(u.to.set, next.Labels):
			u.c.hold("machine/"+o.machine.Name, ReasonUpdating, fmt.Sprintf("it is updated, but the selector of set %s does not match its new labels", u.to.set.Name))
		default:
			edit := u.c.editMachine(o.machine, fmt.Sprintf("updated in place, moves from set %s to set %s", o.of.set.Name, u.to.set.Name))
			edit.Labels, edit.OwnerReferences = next.Labels, next.OwnerReferences
			room--
			moved = true
		}
	}
	return moved
}

// movedMachine returns a copy of a machine that was updated in place, as it looks once it
// has moved from one set to another: the labels by which the first selects it are
// replaced by those of the second, its label says that the update succeeded, so
// that neither set deletes it before it is counted, and the second set controls it
// in place of the first. Other labels and other owners stay. It is nil if any of
// the three is nil.
func movedMachine(m *v1alpha1.Machine, from, to *v1alpha1.MachineSet) *v1alpha1.Machine {
	next := m.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	if from.Spec.Selector != nil {
		for k := range from.Spec.Selector.MatchLabels {
			delete(next.Labels, k)
		}
	}
	if to.Spec.Selector != nil {
		maps.Copy(next.Labels, to.Spec.Selector.MatchLabels)
	}
	next.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
	at := max(0, slices.IndexFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == from.UID || r.UID == to.UID }))
	owners := slices.DeleteFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == from.UID || r.UID == to.UID })
	next.OwnerReferences = slices.Insert(owners, min(at, len(owners)), machineset.OwnerSet(to).Reference())
	return next
}

// selects reports whether the selector of a set fits labels. An unreadable selector
// fits none.
func selects(s *v1alpha1.MachineSet, have map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	return err == nil && selector.Matches(k8slabels.Set(have))
}

// followMoves brings the sizes in line with the machines: an old set gets smaller by
// those that have left it, whether they moved or failed, and a set to which
// machines have moved gets larger by them. Each set has to see the same machines as
// we do, or it would create or delete some for those it has not seen come or go;
// and nothing grows before the others have made room: the new set neither, as long as it
// waits to be given the size of what it has. Machines that are too many then,
// because fewer are wanted by now, are chosen like others once they are acknowledged. They
// take the places of machines that an autoscaler named.
func (u *updates) followMoves() {
	waits := false
	for _, a := range u.c.ledger.accounts {
		if a.isNew && !a.deleting && machineset.ScaleUpDisabled(a.next) && int64(a.next.Spec.Replicas) > a.spec {
			waits = true // its hold is told already
			continue
		}
		present := int64(a.counts.Present)
		left, moved := !a.isNew && present < a.spec && machineset.ScaleUpDisabled(a.set), present > a.spec && a.counts.Moving > 0
		switch {
		case a.deleting || !left && !moved:
		case !a.seesAll():
			waits = waits || left
			u.c.hold("machineset/"+a.set.Name, ReasonSetNotReported, fmt.Sprintf("it reports %s, and %d exist; its size changes when it reports all of them", machines(int64(a.set.Status.Replicas)), a.counts.Machines))
		case left:
			u.c.resize(a, present, plural(present, "%d machine is left", "%d machines are left"))
		}
	}
	for _, a := range u.c.ledger.accounts {
		by := min(int64(a.counts.Moving), int64(a.counts.Present)-a.spec-a.demanded())
		if by > 0 && !waits && !a.deleting && a.seesAll() {
			u.c.resize(a, a.spec+by, plural(by, "%d machine has moved to it", "%d machines have moved to it"))
		}
	}
}

// acknowledge ends the update of machines that have moved. First the Node is given
// back to pods. Once it is, and once the set has reported on a size in which all
// its machines have a place, the label is taken off the machine, and from then on it
// is one like all others.
func (u *updates) acknowledge() {
	for _, o := range u.units {
		if o.stage != updateMoved || o.of.deleting {
			continue
		}
		name := o.machine.Labels[v1alpha1.NodeLabelKey]
		switch {
		case !o.known && name != "":
			u.c.hold("machine/"+o.machine.Name, reasonNodeUnknown, fmt.Sprintf("its update is acknowledged when node %s is known", name))
		case o.node != nil && labeled(o.node):
			uncordonUpdated(u.c.editNode(o.node, "update in place succeeded"))
		case o.of.reported && o.of.counts.Present <= int(o.of.set.Spec.Replicas):
			edit := u.c.editMachine(o.machine, "counted by its new set")
			delete(edit.Labels, v1alpha1.LabelKeyNodeUpdateResult)
		}
	}
}

// unmarkNew takes the marks of an update off the Nodes of the new set. They have
// some if the template went back to an earlier one in the middle of an update. An
// update that has begun goes on, and its Node is given back to pods at its end.
func (u *updates) unmarkNew() {
	for _, o := range u.units {
		if !o.of.isNew || o.node == nil {
			continue
		}
		switch o.stage {
		case updateCandidate:
			unlabel(u.c.editNode(o.node, "machine is up to date"))
		case updateStarted:
			if !hasLabel(o.node, v1alpha1.LabelKeyNodeCandidateForUpdate) {
				u.c.labelNode(o.node, v1alpha1.LabelKeyNodeCandidateForUpdate, "its update has begun and has to end")
			}
		case updateDone:
			uncordonUpdated(u.c.editNode(o.node, "update in place succeeded"))
		case notUpdating, updateFailed, updateMoved: // nothing to take back
		}
	}
}

// keepOldFromGrowing labels the old sets, so that none replaces a machine that has
// left it: what is missing is created by the new set.
func (u *updates) keepOldFromGrowing() {
	for _, a := range u.c.ledger.accounts {
		if a.isNew || a.deleting || machineset.ScaleUpDisabled(a.next) || a.spec == 0 && a.counts.Machines == 0 {
			continue
		}
		metav1.SetMetaDataLabel(&a.next.ObjectMeta, v1alpha1.LabelKeyMachineSetScaleUpDisabled, labelTrue)
		a.changes = append(a.changes, "it creates no machines during the update in place")
	}
}

// sizeSets brings the sum of all sizes to the replicas, and reports whether a size
// changes in this pass. The new set takes what is missing. The old sets give what is
// too much because fewer are wanted, and all they have once the new set is full.
func (u *updates) sizeSets() bool {
	c, l := u.c, u.l
	asked, have := u.oldMachines()
	switch missing := l.Desired - asked - u.has(); {
	case u.to.spec > l.Desired:
		c.shrink(u.to, l.Desired, fmt.Sprintf("%d > %d replicas", u.to.spec, l.Desired), surplus)
	case missing > 0:
		c.grow(u.to, u.to.spec+missing)
	}
	why := fmt.Sprintf("%d replicas are wanted", l.Desired)
	tooMany := have + u.has() - l.Most()
	tooMany -= u.cutNamed(tooMany, why)
	u.cutOld(tooMany, surplus, why)
	if u.to.spec >= l.Desired {
		back := u.cordonedNew()
		u.to.lost += back // nothing is replaced by a machine whose Node takes no pods yet
		u.cutOld(math.MaxInt32, withPreserved, "the new set has all the machines")
		u.to.lost -= back
	}
	return slices.ContainsFunc(c.ledger.accounts, func(a *account) bool { return a.next.Spec.Replicas != a.set.Spec.Replicas })
}

// cutNamed takes machines that the user named from the sets that have them, and
// returns how many. Those that are left count as gone: their sets let them go
// whatever their sizes are.
func (u *updates) cutNamed(tooMany int64, why string) int64 {
	taken := int64(0)
	for _, a := range u.c.ledger.accounts {
		if a.deleting || !a.seesAll() {
			continue
		}
		if n := u.c.take(a, min(u.l.namedToStay(a), tooMany-taken), surplus); n > 0 {
			taken += n
			u.c.resize(a, a.spec, why)
		}
	}
	for _, o := range u.units {
		if o.available && machineset.NamedByAutoscaler(o.of.next, u.c.edited(o.machine)) {
			o.of.lost++
		}
	}
	return taken
}

// cutOld takes machines from the old sets, the oldest first.
func (u *updates) cutOld(tooMany int64, how cutRule, why string) {
	for _, a := range u.l.oldActive() {
		if !a.seesAll() { // it would delete others for those that it has not seen leave
			continue
		}
		tooMany -= u.c.take(a, min(a.spec, tooMany), how)
		if a.spec != int64(a.next.Spec.Replicas) {
			u.c.resize(a, a.spec, why)
		}
		if tooMany > 0 && a.spec > 0 {
			u.c.holdAvailability(a)
		}
	}
}

// oldMachines returns how many machines the old sets ask for, and how many they have or
// may still create.
func (u *updates) oldMachines() (asked, have int64) {
	for _, a := range u.l.accounts {
		switch {
		case a.isNew:
		case machineset.ScaleUpDisabled(a.set):
			asked, have = asked+a.spec, have+min(a.spec, int64(a.counts.Present))
		default:
			asked, have = asked+a.spec, have+a.spec
		}
	}
	return asked, have
}
