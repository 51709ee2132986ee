// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A World is one MachineDeployment with its sets, machines and Nodes, in virtual time. It is not
// safe for concurrent use.
type World struct {
	model Model
	now   time.Time

	deployment  *v1alpha1.MachineDeployment
	truth       *cache
	deployments *shelf[*v1alpha1.MachineDeployment]
	sets        *shelf[*v1alpha1.MachineSet]
	machines    *shelf[*v1alpha1.Machine]
	nodes       *shelf[*corev1.Node]
	followers   []*follower // none if caches show everything at once
	version     int         // the last resource version
	serial      int         // the last number in a UID
	names       int         // the last number in the name of a machine

	planner  planner
	setLoops table[*setLoop] // by UID
	events   events
	frame    Frame
	sizings  map[types.UID]sizing
	changes  int
}

// New returns a world with a new deployment. It copies d. It sets missing name, namespace and UID,
// and clears the status. It returns an error if d is nil or invalid, see
// [deployment.Validate].
func New(d *v1alpha1.MachineDeployment, m Model) (*World, error) {
	if errs := deployment.Validate(d); len(errs) > 0 {
		return nil, fmt.Errorf("the deployment cannot be simulated: %w", errs.ToAggregate())
	}
	w := &World{model: m.withDefaults(), truth: newCache()}
	w.now = w.model.Start
	w.openShelves()
	w.planner.cache = w.truth
	if w.model.Lag != nil {
		w.planner.follower = w.follow()
		w.planner.cache = w.planner.follower.cache
	}
	next := d.DeepCopy()
	if next.Name == "" {
		next.Name = "deployment"
	}
	if next.Namespace == "" {
		next.Namespace = metav1.NamespaceDefault
	}
	next.Status, next.DeletionTimestamp, next.OwnerReferences = v1alpha1.MachineDeploymentStatus{}, nil, nil
	_, err := w.deployments.create(byUser, next)
	return w, err
}

func (w *World) follow() *follower {
	f := &follower{cache: w.truth.clone(), waiting: map[string][]news{}}
	w.followers = append(w.followers, f)
	return f
}

// Now returns the time in the world.
func (w *World) Now() time.Time { return w.now }

// Wait advances the time. No change is applied before the next [World.Step].
func (w *World) Wait(d time.Duration) { w.now = w.now.Add(max(0, d)) }

// At calls a function at a time, before the controllers decide, to change the world as a user does.
// A time in the past means now. Functions for one time are called in the order of the calls of At.
// The world is not at rest before. A nil function is ignored.
func (w *World) At(t time.Time, what func(*World)) {
	if what != nil {
		w.after(t.Sub(w.now), "", "", func(w *World, _ string) { what(w) })
	}
}

// Deployment returns the deployment, or nil after its end. Objects that methods of World return are
// shared and read-only.
func (w *World) Deployment() *v1alpha1.MachineDeployment { return w.deployment }

// Decision returns the last decision about the deployment.
func (w *World) Decision() deployment.Decision { return w.planner.last }

// Sets returns the sets in the order of their creation.
func (w *World) Sets() []*v1alpha1.MachineSet { return w.truth.sets.all() }

// Machines returns the machines in the order of their creation.
func (w *World) Machines() []*v1alpha1.Machine { return w.truth.machines.all() }

// Machine returns the machine with a name, or nil.
func (w *World) Machine(name string) *v1alpha1.Machine { return w.truth.machines.get(name) }

// MachinesOf returns the machines of a set in the order in which it created or adopted them.
func (w *World) MachinesOf(s *v1alpha1.MachineSet) []*v1alpha1.Machine {
	if s == nil || w.truth.owned[s.UID] == nil {
		return nil
	}
	return w.truth.owned[s.UID].all()
}

// Nodes returns the Nodes, sorted by name.
func (w *World) Nodes() []*corev1.Node {
	var nodes []*corev1.Node
	for _, n := range w.truth.nodes {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// Node returns the Node of a machine, or nil.
func (w *World) Node(m *v1alpha1.Machine) *corev1.Node {
	if m == nil {
		return nil
	}
	return w.truth.nodes[nodeName(m)]
}

// nodeNameOf returns the name of the Node of a machine.
func nodeNameOf(machine string) string { return "node-" + machine }

// Edit changes the deployment as a user does. change gets a copy. An error is an error of the API
// server: NotFound if the deployment does not exist any more.
func (w *World) Edit(change func(*v1alpha1.MachineDeployment)) error {
	return edit(w.deployments, w.name(), (*v1alpha1.MachineDeployment).DeepCopy, change)
}

// EditSet changes the metadata and spec of a set as another client does.
func (w *World) EditSet(name string, change func(*v1alpha1.MachineSet)) error {
	return edit(w.sets, name, (*v1alpha1.MachineSet).DeepCopy, change)
}

// EditMachine changes the metadata and spec of a machine as another client does.
func (w *World) EditMachine(name string, change func(*v1alpha1.Machine)) error {
	return edit(w.machines, name, (*v1alpha1.Machine).DeepCopy, change)
}

// EditNode changes the metadata and spec of a Node as another client does.
func (w *World) EditNode(name string, change func(*corev1.Node)) error {
	return edit(w.nodes, name, (*corev1.Node).DeepCopy, change)
}

func edit[T object](s *shelf[T], name string, deepCopy func(T) T, change func(T)) error {
	var none T
	if s.get(name) == none {
		return notFound(s.kind, name)
	}
	next := deepCopy(s.get(name))
	change(next)
	_, err := s.write(byUser, next, metadataAndSpec)
	return err
}

// Delete deletes the deployment as a user does.
func (w *World) Delete() error { return w.deployments.remove(byUser, w.name(), "", "") }

// DeleteSet deletes a set as a user does. The set deletes its machines, and ends with the last of
// them.
func (w *World) DeleteSet(name string) error { return w.sets.remove(byUser, name, "", "") }

// DeleteMachine deletes a machine as a user does.
func (w *World) DeleteMachine(name string) error { return w.machines.remove(byUser, name, "", "") }

// SetPhase sets the phase of a machine, such as Unknown or Failed, as its machine controller does.
// The phase of a machine that is being deleted does not change. The phase Terminating of another
// machine contradicts its deletion timestamp, and the machine controller corrects it.
func (w *World) SetPhase(name string, phase v1alpha1.MachinePhase) error {
	m := w.Machine(name)
	switch {
	case m == nil:
		return notFound(kindMachine, name)
	case m.DeletionTimestamp != nil:
		return nil
	}
	w.say("%s is %s", name, phase)
	w.enter(m, phase, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateFailed, "it was put into this phase")
	if phase == v1alpha1.MachineTerminating {
		w.after(w.reaction(), name, m.UID, (*World).correct)
	}
	return nil
}

// Vanish removes a machine and its Node at once, as if a user had removed their finalizers.
func (w *World) Vanish(name string) error {
	m := w.Machine(name)
	if m == nil {
		return notFound(kindMachine, name)
	}
	if m.DeletionTimestamp == nil {
		must(nil, w.machines.remove(byUser, name, "", ""))
	}
	if w.Machine(name) != nil {
		w.leave(name)
	}
	return nil
}

func notFound(k string, name string) error { return apierrors.NewNotFound(resource(k), name) }

func (w *World) name() string {
	if w.deployment == nil {
		return ""
	}
	return w.deployment.Name
}

func (w *World) say(format string, args ...any) {
	w.frame.Events = append(w.frame.Events, fmt.Sprintf(format, args...))
}

// changed announces a write to the caches, the controllers and the model.
func (w *World) changed(c Change) {
	w.changes++
	if c.Kind != kindDeployment {
		for _, f := range w.followers {
			f.waiting[c.Kind] = append(f.waiting[c.Kind], newsOf(c))
		}
	}
	w.wake(c)
	w.live(c)
	if w.model.OnWrite != nil {
		w.model.OnWrite(c)
	}
}

func newsOf(c Change) news {
	n := news{kind: c.Kind, name: c.Name}
	switch o := c.After.(type) {
	case *v1alpha1.MachineSet:
		n.set = o
	case *v1alpha1.Machine:
		n.machine = o
	case *corev1.Node:
		n.node = o
	}
	return n
}

// wake wakes the controllers that depend on a changed object.
func (w *World) wake(c Change) {
	w.planner.due = w.now
	if s, ok := c.After.(*v1alpha1.MachineSet); ok && c.Before == nil {
		w.setLoops.put(string(s.UID), &setLoop{name: s.Name, uid: s.UID})
	}
	for _, o := range []metav1.Object{c.Before, c.After} {
		switch o := o.(type) {
		case *v1alpha1.MachineSet:
			w.wakeSet(o.UID)
		case *v1alpha1.Machine:
			w.wakeSet(ownerOf(o))
		}
	}
}

// wakeSet wakes the controller of a set, or all without a set.
func (w *World) wakeSet(uid types.UID) {
	if uid != "" {
		if s := w.setLoops.get(string(uid)); s != nil {
			s.due = w.now
		}
		return
	}
	for _, s := range w.setLoops.list() {
		if s != nil {
			s.due = w.now
		}
	}
}
