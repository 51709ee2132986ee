// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// move moves updated machines to the new set, as many as it may have, and reports whether there are
// any. A machine stays while its set might replace it.
func (u *updates) move() bool {
	room, moved := u.l.Desired-u.has(), false
	for _, o := range u.units {
		if o.stage != updateDone || !o.old() || members.Failed(o.machine) || room <= 0 {
			continue
		}
		next := movedMachine(o.machine, o.of.set, u.to.set)
		switch {
		case !members.ScaleUpDisabled(o.of.set):
			u.c.hold("machineset/"+o.of.set.Name, reasonUpdating, fmt.Sprintf("%s is updated; it moves when its set can no longer replace it", o.machine.Name))
		case !selects(u.to.set, next.Labels):
			u.c.hold("machine/"+o.machine.Name, reasonUpdating, fmt.Sprintf("it is updated, but the selector of set %s does not match its new labels", u.to.set.Name))
		default:
			edit := u.c.editMachine(o.machine, fmt.Sprintf("updated in place, moves from set %s to set %s", o.of.set.Name, u.to.set.Name))
			edit.Labels, edit.Annotations, edit.OwnerReferences, edit.Spec.Class = next.Labels, next.Annotations, next.OwnerReferences, next.Spec.Class
			room--
			moved = true
		}
	}
	return moved
}

// movedMachine returns a copy of a machine after its move from one set to another. The labels of
// the first selector are replaced by those of the second, and the second set becomes the
// controller. The label with the successful update keeps both sets from deleting it. The class is
// that of the second template, and labels and annotations that differ between the templates follow
// it. Other labels, annotations and owners stay. The second set updates the node template and the
// configuration.
func movedMachine(m *v1alpha1.Machine, from, to *v1alpha1.MachineSet) *v1alpha1.Machine {
	next := m.DeepCopy()
	next.Spec.Class = to.Spec.Template.Spec.Class
	next.Labels = retemplated(m.Labels, from.Spec.Template.Labels, to.Spec.Template.Labels)
	next.Annotations = retemplated(m.Annotations, from.Spec.Template.Annotations, to.Spec.Template.Annotations)
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
	next.OwnerReferences = slices.Insert(owners, min(at, len(owners)), *metav1.NewControllerRef(to, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.MachineSetKind)))
	return next
}

// retemplated returns the labels or annotations of an object after the change of its template. What
// only the first template has is removed, and what is new or different in the second one is set.
// What both have stays as it is on the object, where a user may have changed it. The result is not
// nil.
func retemplated(have, from, to map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range from {
		if _, stays := to[k]; !stays && out[k] == v {
			delete(out, k)
		}
	}
	for k, v := range to {
		if before, had := from[k]; !had || before != v {
			out[k] = v
		}
	}
	return out
}

// selects reports whether the selector of a set matches labels. An invalid selector matches none.
func selects(s *v1alpha1.MachineSet, have map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	return err == nil && selector.Matches(k8slabels.Set(have))
}

// followMoves adapts the sizes to the machines: an old set becomes smaller by those that left it,
// and the set that got them becomes larger. Each set must have reported the same machines, or it
// would create or delete others. No set grows before the others have become smaller, or while the
// new set waits for its size. If too many machines exist then, some are chosen for deletion after
// they are acknowledged.
func (u *updates) followMoves() {
	waits := false
	for _, a := range u.c.ledger.accounts {
		if a.isNew && !a.deleting && members.ScaleUpDisabled(a.next) && int64(a.next.Spec.Replicas) > a.spec {
			waits = true // allowGrowth holds it
			continue
		}
		present := int64(a.counts.Present)
		left, moved := !a.isNew && present < a.spec && members.ScaleUpDisabled(a.set), present > a.spec && a.counts.Moving > 0
		switch {
		case a.deleting || !left && !moved:
		case !a.seesAll():
			waits = waits || left
			u.c.hold("machineset/"+a.set.Name, reasonSetNotReported, fmt.Sprintf("it reports %s, and %d exist; its size changes when it reports all of them", machines(int64(a.set.Status.Replicas)), a.counts.Machines))
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

// acknowledge ends the update of machines that moved. First the Node is uncordoned. Then, once the
// set has reported a size for all its machines, the label of the update is removed from the
// machine.
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
			uncordonUpdated(u.c.editNode(o.node, "update in place succeeded"), awaitsComponents(o.machine, o.node))
		case o.of.reported && o.of.counts.Present <= int(o.of.set.Spec.Replicas):
			edit := u.c.editMachine(o.machine, "counted by its new set")
			delete(edit.Labels, v1alpha1.LabelKeyNodeUpdateResult)
		}
	}
}

// unmarkNew removes the marks of an update from the Nodes of the new set. They have marks if the
// template returned to a former one during an update. An update that has begun continues, and its
// Node is uncordoned at its end.
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
			uncordonUpdated(u.c.editNode(o.node, "update in place succeeded"), awaitsComponents(o.machine, o.node))
		case notUpdating, updateFailed, updateMoved: // no marks
		}
	}
}

// keepOldFromGrowing adds the label that disables scale-up to the old sets, so that none replaces a
// machine that left it.
func (u *updates) keepOldFromGrowing() {
	for _, a := range u.c.ledger.accounts {
		if a.isNew || a.deleting || members.ScaleUpDisabled(a.next) || a.spec == 0 && a.counts.Machines == 0 {
			continue
		}
		metav1.SetMetaDataLabel(&a.next.ObjectMeta, v1alpha1.LabelKeyMachineSetScaleUpDisabled, labelTrue)
		a.changes = append(a.changes, "it creates no machines during the update in place")
	}
}

// sizeSets brings the sum of all sizes to the replicas, and reports whether a size changes. The new
// set gets the missing machines. The old sets shrink if too many exist, and completely once the new
// set is full.
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
		u.to.lost += back // a machine on a cordoned Node replaces none
		u.cutOld(math.MaxInt32, withPreserved, "the new set has all the machines")
		u.to.lost -= back
	}
	return slices.ContainsFunc(c.ledger.accounts, func(a *account) bool { return a.next.Spec.Replicas != a.set.Spec.Replicas })
}

// cutNamed takes machines that a user named for deletion from their sets, and returns their number.
// Named machines that remain count as lost, because their sets delete them at any size.
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
		if o.available && members.NamedByAutoscaler(o.of.next, u.c.edited(o.machine)) {
			o.of.lost++
		}
	}
	return taken
}

// cutOld takes machines from the old sets, the oldest set first: the unavailable machines of all sets,
// and then others. A set that does not see all its machines would delete others instead of those that
// left it.
func (u *updates) cutOld(tooMany int64, how cutRule, why string) {
	sets := slices.DeleteFunc(u.l.oldActive(), func(a *account) bool { return !a.seesAll() })
	unavailable := how
	unavailable.most = costsNothing
	for _, a := range sets {
		tooMany -= u.c.take(a, min(a.spec, tooMany), unavailable)
	}
	for _, a := range sets {
		tooMany -= u.c.take(a, min(a.spec, tooMany), how)
		if a.spec != int64(a.next.Spec.Replicas) {
			u.c.resize(a, a.spec, why)
		}
		if tooMany > 0 && a.spec > 0 {
			u.c.holdAvailability(a)
		}
	}
}

// oldMachines returns the replicas of the old sets, and the number of machines that they have or
// may create.
func (u *updates) oldMachines() (asked, have int64) {
	for _, a := range u.l.accounts {
		switch {
		case a.isNew:
		case members.ScaleUpDisabled(a.set):
			asked, have = asked+a.spec, have+min(a.spec, int64(a.counts.Present))
		default:
			asked, have = asked+a.spec, have+a.spec
		}
	}
	return asked, have
}
