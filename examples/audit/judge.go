// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// count returns how many machines of a deployment are alive and available.
func (r *replay) count(of types.UID) (alive, available int) {
	for _, l := range r.objects.lives {
		if l.of == of && l.alive() {
			alive++
		}
		if l.of == of && l.available() {
			available++
		}
	}
	return alive, available
}

// measure keeps the figures.
func (r *replay) measure() {
	alive := 0
	for _, l := range r.objects.lives {
		if l.alive() {
			alive++
		}
	}
	r.figures.MostAlive = max(r.figures.MostAlive, alive)
	for uid, t := range r.objects.tallies {
		if !t.reached || t.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
			continue
		}
		if available := r.available(uid); r.figures.FewestAvailable < 0 || available < r.figures.FewestAvailable {
			r.figures.FewestAvailable = available
		}
	}
}

// available counts the machines of a deployment that are available, and those that are
// excused and exist.
func (r *replay) available(of types.UID) int {
	n := 0
	for _, l := range r.objects.lives {
		if l.of == of && (l.available() || l.alive() && r.options.Excused != nil && r.options.Excused(l.m)) {
			n++
		}
	}
	return n
}

// judge judges what has happened since all was known last: at once, by the last
// of its kind, for the order of a list is unknown.
func (r *replay) judge() {
	var from time.Time
	forgiven := map[types.UID]bool{}
	for i, e := range r.pending {
		if earliest := r.earliest(e.change); i == 0 || earliest.Before(from) {
			from = earliest
		}
		if !e.grew && (!e.own || r.options.Excused != nil && r.options.Excused(e.life.m)) {
			forgiven[e.of] = true
		}
	}
	for i, e := range r.pending {
		switch {
		case slices.ContainsFunc(r.pending[i+1:], e.like):
		case e.grew:
			r.crowded(e, from.Add(-r.options.Tolerance))
		case !forgiven[e.of]:
			r.scarce(e)
		}
	}
}

// like says whether another effect means the same for the same bounds.
func (e effect) like(other effect) bool {
	return e.grew == other.grew && e.of == other.of && e.life.of == other.life.of && owner(e.life.m) == owner(other.life.m)
}

// crowded judges one machine more, for which any bound since a time is good.
func (r *replay) crowded(e effect, from time.Time) {
	alive, _ := r.count(e.life.of)
	if t := r.objects.tallies[e.life.of]; t != nil && more(alive, t.room.most(from, time.Time{}), r.options.Lost+r.options.ByHand) {
		r.broken(MachinesOfDeployment, "%d machines of %s alive > %d replicas + %d surge, after %s",
			alive, t.d.Name, t.d.Spec.Replicas, boundsOf(t.d).Surge, e.change)
	}
	in := owner(e.life.m)
	s := r.objects.sets[in]
	if s == nil {
		return
	}
	alive = 0
	for _, l := range r.objects.lives {
		if l.alive() && owner(l.m) == in {
			alive++
		}
	}
	if more(alive, s.room.most(from, time.Time{}), r.options.ByHand) {
		r.broken(MachinesOfSet, "%d machines of set %s alive > %d replicas, after %s", alive, s.s.Name, s.s.Spec.Replicas, e.change)
	}
}

// more says whether a number is above a bound by more than was lost.
func more(n, bound, lost int) bool { return n-max(0, lost) > bound }

// frozen judges that a set or a deployment is frozen.
func (r *replay) frozen(c Change, o metav1.Object) {
	if !c.Gone && r.options.ByHand <= 0 && o.GetLabels()[v1alpha1.FreezeLabelKey] == "True" {
		r.broken(Frozen, "%s is frozen: it has too many machines", o.GetName())
	}
}

// scarce judges one available machine less.
func (r *replay) scarce(e effect) {
	t := r.objects.tallies[e.of]
	if t == nil || !t.reached {
		return
	}
	if _, available := r.count(e.of); available < int(boundsOf(t.d).Least()) {
		r.broken(Availability, "%d machines of %s available < %d replicas - %d unavailable, after %s",
			available, t.d.Name, t.d.Spec.Replicas, boundsOf(t.d).Unavailable, e.change)
	}
}
