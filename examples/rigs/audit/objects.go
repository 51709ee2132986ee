// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// objects is the state of the replay of the objects.
type objects struct {
	states    map[types.UID]*deploymentState
	sets      map[types.UID]*set
	histories map[types.UID]*machineHistory
}

func newObjects() objects {
	return objects{states: map[types.UID]*deploymentState{}, sets: map[types.UID]*set{}, histories: map[types.UID]*machineHistory{}}
}

// deploymentState is a deployment in the replay.
type deploymentState struct {
	d       *v1alpha1.MachineDeployment
	reached bool // the deployment was complete with this floor
	room    timeline
}

// set is a machine set in the replay.
type set struct {
	s    *v1alpha1.MachineSet
	of   types.UID // its deployment
	room timeline
}

// machineHistory is a machine in the replay, also after its removal.
type machineHistory struct {
	m  *v1alpha1.Machine
	of types.UID // its deployment
	// joined is the latest time at which the machine joined the deployment. Zero means
	// that it was created for it.
	joined time.Time
	// born is the earliest time of its creation.
	born time.Time
	// guarded is the earliest time with the finalizer, unguarded the latest time without
	// it. deleting is the earliest time of its deletion timestamp, gone the latest time of
	// its removal.
	guarded, unguarded, deleting, gone *time.Time
	// failed is when the machine last became unavailable by itself.
	failed time.Time
}

// alive reports whether the machine exists and is not being deleted.
func (l *machineHistory) alive() bool { return l.gone == nil && l.m.DeletionTimestamp.IsZero() }

// available reports whether the machine is alive and available.
func (l *machineHistory) available() bool {
	phase := l.m.Status.CurrentStatus.Phase
	return l.alive() && (phase == v1alpha1.MachineRunning || phase == v1alpha1.MachineAvailable)
}

// join moves the machine to a deployment.
func (l *machineHistory) join(of types.UID, latest time.Time) {
	if l.of != of {
		l.of, l.joined = of, latest
	}
}

// effect is the effect of a change on the bounds.
type effect struct {
	change         Change
	machineHistory *machineHistory
	of             types.UID // the deployment before the change
	// grew means that there is one machine more. Otherwise one less is available.
	grew bool
	// own means that a client caused the change.
	own bool
}

// apply applies a change and returns its effects.
func (r *replay) apply(c Change) []effect {
	switch o := c.Object.(type) {
	case *v1alpha1.MachineDeployment:
		r.checkNotFrozen(c, o)
		r.applyDeployment(c, o)
	case *v1alpha1.MachineSet:
		r.checkNotFrozen(c, o)
		r.applySet(c, o)
	case *v1alpha1.Machine:
		return r.applyMachine(c, o)
	}
	return nil
}

func (r *replay) applyDeployment(c Change, d *v1alpha1.MachineDeployment) {
	t := r.objects.states[d.UID]
	first := t == nil
	if first {
		t = &deploymentState{d: d}
		r.objects.states[d.UID] = t
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

// boundsOf returns the bounds of a deployment. Invalid bounds are zero.
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
	for _, l := range r.objects.histories {
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

// owner returns the UID of the controller of an object, or "".
func owner(o metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}

func (r *replay) applyMachine(c Change, m *v1alpha1.Machine) []effect {
	l := r.objects.histories[m.UID]
	first := l == nil
	if first {
		l = &machineHistory{m: m, born: r.earliest(c)}
		r.objects.histories[m.UID] = l
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
		return []effect{{change: c, machineHistory: l, grew: true}}
	}
	if was && (!l.available() || of != l.of) {
		own := !c.Listed && !l.alive() || r.options.Steady
		if !own {
			l.failed = c.Time
		}
		return []effect{{change: c, machineHistory: l, of: of, own: own}}
	}
	return nil
}

// age records the times of a machine.
func (r *replay) age(l *machineHistory, c Change) {
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
