// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// objects is how far the replay of the objects has come.
type objects struct {
	tallies map[types.UID]*tally
	sets    map[types.UID]*set
	lives   map[types.UID]*life
}

func newObjects() objects {
	return objects{tallies: map[types.UID]*tally{}, sets: map[types.UID]*set{}, lives: map[types.UID]*life{}}
}

// tally is a deployment.
type tally struct {
	d       *v1alpha1.MachineDeployment
	reached bool // it has been complete with this floor
	room    timeline
}

// set is a machine set.
type set struct {
	s    *v1alpha1.MachineSet
	of   types.UID // its deployment
	room timeline
}

// life is a machine, from when it was seen first, and after it is gone.
type life struct {
	m  *v1alpha1.Machine
	of types.UID // its deployment
	// joined is when it came to that deployment at the latest, zero if it was made
	// for it.
	joined time.Time
	// born is when it was made at the earliest.
	born time.Time
	// guarded is when it had its finalizer at the earliest, unguarded when it had
	// lost it at the latest, deleting when its deletion began at the earliest,
	// gone when it was gone at the latest.
	guarded, unguarded, deleting, gone *time.Time
}

// alive says whether the machine exists and is not being deleted.
func (l *life) alive() bool { return l.gone == nil && l.m.DeletionTimestamp.IsZero() }

// available says whether the machine is alive and available.
func (l *life) available() bool {
	return l.alive() && machine.TraitsOf(l.m.Status.CurrentStatus.Phase).Available
}

// join brings the machine to a deployment.
func (l *life) join(of types.UID, latest time.Time) {
	if l.of != of {
		l.of, l.joined = of, latest
	}
}

// effect is what a change means for a bound.
type effect struct {
	change Change
	life   *life
	of     types.UID // the deployment before the change
	// grew means that there is one machine more; otherwise one less is available.
	grew bool
	// own means that this was done and did not happen by itself.
	own bool
}

// apply takes a change over and returns what it means.
func (r *replay) apply(c Change) []effect {
	switch o := c.Object.(type) {
	case *v1alpha1.MachineDeployment:
		r.frozen(c, o)
		r.applyDeployment(c, o)
	case *v1alpha1.MachineSet:
		r.frozen(c, o)
		r.applySet(c, o)
	case *v1alpha1.Machine:
		return r.applyMachine(c, o)
	}
	return nil
}

func (r *replay) applyDeployment(c Change, d *v1alpha1.MachineDeployment) {
	t := r.objects.tallies[d.UID]
	first := t == nil
	if first {
		t = &tally{d: d}
		r.objects.tallies[d.UID] = t
	}
	missed := c.Listed && (first || t.d.Generation != d.Generation)
	if missed {
		t.room.unknown(r.earliest(c), c.Time)
	}
	t.reached = t.reached && !missed && boundsOf(d).Least() <= boundsOf(t.d).Least() || deployment.Complete(d, d.Status)
	t.d = d
	room := int(boundsOf(d).Most())
	if c.Gone || !d.DeletionTimestamp.IsZero() {
		room, t.reached = unbounded, false
	}
	t.room.set(room, r.earliest(c), c.Time)
}

// boundsOf returns the bounds of a deployment. Those that cannot be read allow nothing.
func boundsOf(d *v1alpha1.MachineDeployment) deployment.Bounds {
	b, _ := deployment.BoundsOf(d)
	return b
}

func (r *replay) applySet(c Change, o *v1alpha1.MachineSet) {
	s := r.objects.sets[o.UID]
	first := s == nil
	if first {
		s = &set{s: o}
		r.objects.sets[o.UID] = s
	}
	if c.Listed && (first || s.s.Generation != o.Generation) {
		s.room.unknown(r.earliest(c), c.Time)
	}
	s.s, s.of = o, owner(o)
	for _, l := range r.objects.lives {
		if owner(l.m) == o.UID {
			l.join(s.of, c.Time)
		}
	}
	room := int(o.Spec.Replicas)
	if c.Gone || !o.DeletionTimestamp.IsZero() {
		room = unbounded
	}
	s.room.set(room, r.earliest(c), c.Time)
}

// owner returns the controller of an object, or nothing.
func owner(o metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}

func (r *replay) applyMachine(c Change, m *v1alpha1.Machine) []effect {
	l := r.objects.lives[m.UID]
	first := l == nil
	if first {
		l = &life{m: m, born: r.earliest(c)}
		r.objects.lives[m.UID] = l
	}
	was, of := l.available() && !first, l.of
	l.m = m
	if s := r.objects.sets[owner(m)]; s != nil && first {
		l.of = s.of
	} else if s != nil {
		l.join(s.of, c.Time)
	}
	r.age(l, c)
	if first && l.alive() {
		return []effect{{change: c, life: l, grew: true}}
	}
	if was && (!l.available() || of != l.of) {
		return []effect{{change: c, life: l, of: of, own: !c.Listed && !l.alive() || r.options.Steady}}
	}
	return nil
}

// age notes what became of a machine when.
func (r *replay) age(l *life, c Change) {
	earliest, latest := r.earliest(c), c.Time
	guarded := slices.Contains(l.m.Finalizers, v1alpha1.MCMFinalizerName)
	if guarded && l.guarded == nil {
		l.guarded = &earliest
	}
	switch {
	case c.Gone:
		l.gone = &latest
	case guarded:
		l.unguarded = nil
	case l.guarded != nil && l.unguarded == nil:
		l.unguarded = &latest
	}
	if l.deleting == nil && !l.alive() {
		l.deleting = &earliest
	}
}
