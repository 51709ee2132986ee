// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"errors"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Restore returns a world that begins with the objects of an observation, at Model.Start. It copies
// them. Each Node gets the name of the Node of its machine in a world. A machine that joins, leaves or is
// updated goes on with what is left of its time; one whose time is over does so at once. It returns an
// error for an observation without a deployment or with an invalid one, and for one that is not complete.
func Restore(in deployment.Observation, m Model) (*World, error) {
	switch {
	case in.Deployment == nil || !in.Complete:
		return nil, errors.New("the deployment cannot be simulated: it was not observed completely")
	case in.Deployment.DeletionTimestamp != nil:
		return nil, errors.New("the deployment cannot be simulated: it is being deleted")
	}
	m.NoCluster = m.NoCluster || in.NoCluster
	w, err := New(in.Deployment, m)
	if err != nil {
		return nil, err
	}
	w.deployment = in.Deployment.DeepCopy()
	w.version++
	w.deployment.ResourceVersion = strconv.Itoa(w.version)
	for _, s := range in.Sets {
		if s != nil {
			next := s.DeepCopy()
			w.restored(next)
			w.sets.put(next.Name, next)
			w.setLoops.put(string(next.UID), &setLoop{name: next.Name, uid: next.UID, loop: loop{due: w.now}})
		}
	}
	for _, old := range in.Machines {
		if old != nil {
			w.restoreMachine(in, old)
		}
	}
	if f := w.planner.follower; f != nil {
		f.cache = w.truth.clone()
		w.planner.cache = f.cache
	}
	for _, next := range w.Machines() {
		w.resume(next)
	}
	return w, nil
}

// restored gives an object a resource version of this world. Names and UIDs with numbers, as those of
// another world, are not given again.
func (w *World) restored(o metav1.Object) {
	number := func(text string) int {
		n, _ := strconv.Atoi(text[strings.LastIndexByte(text, '-')+1:]) // 0 if it is none
		return n
	}
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
	w.names, w.serial = max(w.names, number(o.GetName())), max(w.serial, number(string(o.GetUID())))
}

// restoreMachine puts a machine and its Node into the world.
func (w *World) restoreMachine(in deployment.Observation, m *v1alpha1.Machine) {
	next, node := m.DeepCopy(), in.Nodes[nodeName(m)]
	w.restored(next)
	if nodeName(m) != "" {
		next.Labels[v1alpha1.NodeLabelKey] = nodeNameOf(m.Name)
	}
	w.machines.put(next.Name, next)
	if node != nil && !w.model.NoCluster {
		copied := node.DeepCopy()
		copied.Name = nodeNameOf(m.Name)
		w.restored(copied)
		w.nodes.put(copied.Name, copied)
	}
}

// resume schedules what a machine does next.
func (w *World) resume(m *v1alpha1.Machine) {
	left := func(whole time.Duration, since metav1.Time) time.Duration { return max(0, whole-w.now.Sub(since.Time)) }
	later := func(after time.Duration, what func(*World, string)) { w.after(after, m.Name, m.UID, what) }
	if m.DeletionTimestamp != nil {
		later(left(w.model.Leave(m), *m.DeletionTimestamp), (*World).leave)
		return
	}
	since := m.Status.CurrentStatus.LastUpdateTime
	switch phase := m.Status.CurrentStatus.Phase; phase {
	case v1alpha1.MachinePending:
		if after, ok := w.model.Join(m); ok {
			later(left(after, m.CreationTimestamp), (*World).join)
		}
	case "", v1alpha1.MachineCrashLoopBackOff:
		later(0, (*World).born)
	case v1alpha1.MachineUnknown:
		if w.model.HealthTimeout > 0 {
			later(left(w.model.HealthTimeout, since), func(w *World, name string) {
				if inState(w.Machine(name), v1alpha1.MachineUnknown, since.Time) {
					_ = w.SetPhase(name, v1alpha1.MachineFailed) // the machine exists
				}
			})
		}
	case v1alpha1.MachineInPlaceUpdating:
		if after, ok := w.model.Update(m); w.Node(m) != nil {
			later(left(after, since), func(w *World, name string) {
				if m := w.Machine(name); w.Node(m) != nil && inState(m, v1alpha1.MachineInPlaceUpdating, since.Time) {
					w.tellResult(w.Node(m), ok)
				}
			})
		}
	case v1alpha1.MachineInPlaceUpdateSuccessful:
		later(0, (*World).heal)
	default: // it stays until a controller acts
	}
	if w.model.CreationTimeout > 0 {
		later(left(w.model.CreationTimeout, m.CreationTimestamp), (*World).timeOut)
	}
}
