// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// count returns the number of live machines of a deployment.
func (r *replay) count(of types.UID) (alive int) {
	for _, l := range r.objects.histories {
		if l.of == of && l.alive() {
			alive++
		}
	}
	return alive
}

// measure updates the figures.
func (r *replay) measure() {
	alive := 0
	for _, l := range r.objects.histories {
		if l.alive() {
			alive++
		}
	}
	r.figures.MostAlive = max(r.figures.MostAlive, alive)
	for uid, t := range r.objects.states {
		if !t.reached || t.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
			continue
		}
		if available := r.available(uid); r.figures.FewestAvailable < 0 || available < r.figures.FewestAvailable {
			r.figures.FewestAvailable = available
		}
	}
}

// available returns the number of available and excused machines of a deployment.
func (r *replay) available(of types.UID) int {
	n := 0
	for _, l := range r.objects.histories {
		if l.of == of && (l.available() || l.alive() && r.options.Excused != nil && r.options.Excused(l.m)) {
			n++
		}
	}
	return n
}

// judge checks the pending effects once all changes are known. Of equal effects it checks only the
// last, because the order of listed changes is unknown.
func (r *replay) judge() {
	var from time.Time
	forgiven := map[types.UID]bool{}
	for i, e := range r.pending {
		if earliest := r.earliest(e.change); i == 0 || earliest.Before(from) {
			from = earliest
		}
		if !e.grew && (!e.own || r.options.Excused != nil && r.options.Excused(e.machineHistory.m)) {
			forgiven[e.of] = true
		}
	}
	for i, e := range r.pending {
		switch {
		case slices.ContainsFunc(r.pending[i+1:], e.like):
		case e.grew:
			r.checkUpper(e, from.Add(-r.options.Tolerance))
		case !forgiven[e.of]:
			r.checkAvailable(e)
		}
	}
}

// like reports whether two effects concern the same bounds in the same way.
func (e effect) like(other effect) bool {
	return e.grew == other.grew && e.of == other.of && e.machineHistory.of == other.machineHistory.of && owner(e.machineHistory.m) == owner(other.machineHistory.m)
}

// checkUpper checks the upper bounds after the number of machines grew. Every bound since a time is
// allowed.
func (r *replay) checkUpper(e effect, from time.Time) {
	alive := r.count(e.machineHistory.of)
	if t := r.objects.states[e.machineHistory.of]; t != nil && more(alive, t.room.most(from, time.Time{}), r.options.Lost+r.options.ByHand) {
		r.violate(MachinesOfDeployment, "%d live machines of %s > %d replicas + %d surge, after %s",
			alive, t.d.Name, t.d.Spec.Replicas, boundsOf(t.d).Surge, e.change)
	}
	in := owner(e.machineHistory.m)
	s := r.objects.sets[in]
	if s == nil {
		return
	}
	alive = 0
	for _, l := range r.objects.histories {
		if l.alive() && owner(l.m) == in {
			alive++
		}
	}
	if more(alive, s.room.most(from, time.Time{}), r.options.ByHand) {
		r.violate(MachinesOfSet, "%d live machines of set %s > %d replicas, after %s", alive, s.s.Name, s.s.Spec.Replicas, e.change)
	}
}

// more reports whether a number exceeds a bound by more than the lost machines.
func more(n, bound, lost int) bool { return n-max(0, lost) > bound }

// checkNotFrozen checks that a set or a deployment is not frozen.
func (r *replay) checkNotFrozen(c Change, o metav1.Object) {
	if !c.Gone && r.options.ByHand <= 0 && o.GetLabels()[v1alpha1.FreezeLabelKey] == "True" {
		r.violate(Frozen, "%s is frozen because of surplus machines", o.GetName())
	}
}

// checkAvailable checks the lower bound after a machine became unavailable. A machine that failed by
// itself within the tolerance counts as available: the controllers may not know yet that it failed.
func (r *replay) checkAvailable(e effect) {
	t := r.objects.states[e.of]
	if t == nil || !t.reached {
		return
	}
	available, since := 0, r.earliest(e.change).Add(-r.options.Tolerance)
	var unavailable []string
	for _, l := range r.objects.histories {
		switch {
		case l.of != e.of || !l.alive():
		case l.available() || !l.failed.IsZero() && !l.failed.Before(since):
			available++
		case l.failed.IsZero():
			unavailable = append(unavailable, l.m.Name)
		default:
			unavailable = append(unavailable, fmt.Sprintf("%s since %s", l.m.Name, l.failed.Format(time.StampMilli)))
		}
	}
	if available >= int(boundsOf(t.d).Least()) {
		return
	}
	text := ""
	if len(unavailable) > 0 {
		slices.Sort(unavailable)
		text = "; unavailable: " + strings.Join(unavailable, ", ")
	}
	r.violate(Availability, "%d available machines of %s < %d replicas - %d unavailable, after %s%s",
		available, t.d.Name, t.d.Spec.Replicas, boundsOf(t.d).Unavailable, e.change, text)
}
