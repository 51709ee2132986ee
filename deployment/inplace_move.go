// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// move gives finished machines to the new set, as many as it may have, and says
// whether there are any. A set that might still replace a machine which leaves it
// keeps them until it is known not to.
func (u *updates) move() bool {
	room, moved := u.l.desired-u.has(), false
	for _, o := range u.units {
		if o.stage != UpdateDone || !o.old() || machineset.Failed(o.machine) || room <= 0 {
			continue
		}
		next := Move(o.machine, o.of.set, u.to.set)
		switch {
		case !machineset.ScaleUpDisabled(o.of.set):
			u.c.hold(o.of.set.Name, ReasonUpdating, fmt.Sprintf("%s is updated; its set has to be kept from replacing it first", o.machine.Name))
		case !selects(u.to.set, next.Labels):
			u.c.hold(o.machine.Name, ReasonUpdating, fmt.Sprintf("it is updated, and the selector of %s would not have it", u.to.set.Name))
		default:
			edit := u.c.editMachine(o.machine, fmt.Sprintf("it is updated and moves from %s to %s", o.of.set.Name, u.to.set.Name))
			edit.Labels, edit.OwnerReferences = next.Labels, next.OwnerReferences
			room--
			moved = true
		}
	}
	return moved
}

// Move returns a copy of a machine that was updated in place, as it looks once it
// has moved from one set to another: the labels by which the first selects it are
// replaced by those of the second, its label says that the update succeeded, so
// that neither set deletes it before it is counted, and the second set controls it
// in place of the first. Other labels and other owners stay. It is nil if any of
// the three is nil.
func Move(m *v1alpha1.Machine, from, to *v1alpha1.MachineSet) *v1alpha1.Machine {
	if m == nil || from == nil || to == nil {
		return nil
	}
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

// selects says whether the selector of a set fits labels. An unreadable selector
// fits none.
func selects(s *v1alpha1.MachineSet, have map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(have))
}

// followMoves brings the sizes in line with the machines: an old set gets smaller by
// those that have left it, whether they moved or failed, and a set to which
// machines have moved gets larger by them. Each set has to see the same machines as
// we do, or it would create or delete some for those it has not seen come or go;
// and nothing grows before the others have made room, so that the sum stays within
// its bound.
func (u *updates) followMoves() {
	for _, a := range u.c.accounts {
		present := int64(a.counts.Present)
		left, moved := !a.isNew && present < a.spec && machineset.ScaleUpDisabled(a.set), present > a.spec && a.counts.Moving > 0
		switch {
		case a.doomed || !left && !moved:
		case !a.seesAll():
			u.c.hold(a.set.Name, ReasonSetNotReported, fmt.Sprintf("it has reported %d machines and has %d; its size follows when it has seen them all", a.set.Status.Replicas, a.counts.Machines))
		case left:
			u.c.resize(a, present, fmt.Sprintf("machines left: %d", present))
		}
	}
	for _, a := range u.c.accounts {
		room := u.l.desired + u.l.surge - u.l.sum(func(b *account) int64 { return max(b.spec, int64(b.next.Spec.Replicas)) })
		by := min(int64(a.counts.Moving), a.placeless(), room)
		if !a.doomed && a.seesAll() && by > 0 {
			u.c.resize(a, a.spec+by, fmt.Sprintf("machines that have moved to it: %d", by))
		}
	}
}

// placeless returns how many machines of a set are more than it asks for.
func (a *account) placeless() int64 { return int64(a.counts.Present) - a.spec }

// nameInstead deals with machines that have moved to a set in which they have no
// place, and get none, because fewer machines are wanted by now. It names which
// machines of the set go: once the others are acknowledged, the set deletes those,
// and not others that may be needed more. Until then it is only a plan, which is
// made anew in each pass: a name stands as long as its machine is too many and may
// be spared, and is withdrawn otherwise. Old sets that have not seen all their
// machines are waited for, as they may give some that are not updated.
func (u *updates) nameInstead() {
	tooMany := u.l.sum((*account).remaining) - u.l.desired - u.l.surge
	if slices.ContainsFunc(u.c.accounts, (*account).mayGiveSoon) {
		tooMany = 0
	}
	for _, a := range u.c.accounts {
		if a.doomed || a.counts.Moving == 0 || !a.seesAll() {
			continue
		}
		n := min(a.placeless()-int64(len(a.victims)+a.demanded()), tooMany)
		if n <= 0 && !a.namesForNothing() {
			continue
		}
		chosen := u.chooseInstead(a, n)
		tooMany -= int64(len(chosen))
		var names []string
		for _, v := range append(slices.Clip(a.victims), chosen...) {
			names = append(names, v.Machine.Name)
		}
		names = a.withLeaving(names)
		if !slices.Equal(names, machineset.Victims(a.next)) {
			machineset.NameVictims(a.next, names)
			a.changes = append(a.changes, fmt.Sprintf("%d machines are too many", len(chosen)))
		}
	}
}

// remaining returns how many machines of a set there are beside those that go.
func (a *account) remaining() int64 {
	return int64(a.counts.Present - len(a.goers) - len(a.chosen))
}

// mayGiveSoon says whether an old set has machines to give, and only has to report
// on those that have left it.
func (a *account) mayGiveSoon() bool {
	return !a.isNew && !a.doomed && a.counts.Moving == 0 && a.spec > 0 && !a.seesAll()
}

// namesForNothing says whether a set names a machine which does not go for the size
// that it has.
func (a *account) namesForNothing() bool {
	names := sets.New(machineset.Victims(a.next)...)
	for _, v := range a.victims {
		names.Delete(v.Machine.Name)
	}
	return len(names) > 0 && slices.ContainsFunc(a.machines, func(m *v1alpha1.Machine) bool {
		return !machineset.Leaving(m) && names.Has(m.Name)
	})
}

// chooseInstead chooses n machines of a set, among them those that have moved to
// it: those that are named already, and then others.
func (u *updates) chooseInstead(a *account, n int64) []machineset.Victim {
	names := sets.New(machineset.Victims(a.set)...)
	var named, others []*v1alpha1.Machine
	add := func(m *v1alpha1.Machine) {
		if names.Has(m.Name) {
			named = append(named, m)
		} else {
			others = append(others, m)
		}
	}
	for _, m := range a.stay {
		add(m)
	}
	for _, o := range u.units {
		if o.of == a && o.stage == UpdateMoved && !machineset.NamedByAutoscaler(a.set, o.machine) {
			add(o.machine)
		}
	}
	var chosen []machineset.Victim
	for _, from := range [][]*v1alpha1.Machine{named, others} {
		for _, v := range u.c.choose(a, from, n-int64(len(chosen)), u.l.slack(), unwanted, false) {
			if u.c.available(a, v.Machine) {
				a.lost++
			}
			chosen = append(chosen, v)
		}
	}
	return chosen
}

// named returns how many machines of a set are named to go, be it by an autoscaler
// or by the set: as it was seen, and as this pass leaves it.
func (a *account) named() int {
	names := sets.New(machineset.Victims(a.set)...).Intersection(sets.New(machineset.Victims(a.next)...))
	n := 0
	for _, m := range a.machines {
		if !machineset.Leaving(m) && (names.Has(m.Name) || machineset.NamedByAutoscaler(a.set, m)) {
			n++
		}
	}
	return n
}

// demanded returns how many machines that have moved to a set go for an autoscaler
// as soon as they are acknowledged.
func (a *account) demanded() int {
	n := 0
	for _, m := range a.machines {
		if !machineset.Leaving(m) && machineset.Transferred(m) && machineset.NamedByAutoscaler(a.set, m) {
			n++
		}
	}
	return n
}
