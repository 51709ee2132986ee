// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// live makes machines and Nodes react to a change.
func (w *World) live(c Change) {
	switch after := c.After.(type) {
	case *v1alpha1.Machine:
		before, existed := c.Before.(*v1alpha1.Machine)
		switch {
		case !existed:
			w.after(0, after.Name, after.UID, (*World).born)
			if w.model.CreationTimeout > 0 {
				w.after(w.model.CreationTimeout, after.Name, after.UID, (*World).timeOut)
			}
		case before.DeletionTimestamp == nil && after.DeletionTimestamp != nil:
			w.after(w.reaction(), after.Name, after.UID, (*World).terminate)
		}
	case *corev1.Node:
		before, existed := c.Before.(*corev1.Node)
		if m := w.Machine(machineOf(after.Name)); existed && m != nil &&
			(!maps.Equal(before.Labels, after.Labels) || slices.ContainsFunc(after.Spec.Taints, critical)) {
			w.after(0, m.Name, m.UID, (*World).updateInPlace)
		}
	}
}

// reaction returns the time until a deletion is seen.
func (w *World) reaction() time.Duration {
	if w.model.Idle != nil && w.model.Idle(byMachine) {
		return again
	}
	return 0
}

// machineOf returns the name of the machine of a Node.
func machineOf(node string) string { return node[min(len(node), len(nodeNameOf(""))):] }

// enter writes a phase of a machine.
func (w *World) enter(m *v1alpha1.Machine, phase v1alpha1.MachinePhase, op v1alpha1.MachineOperationType, state v1alpha1.MachineState, text string) {
	w.writeStatus(m, func(s *v1alpha1.MachineStatus) {
		s.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(w.now), PreserveExpiryTime: s.CurrentStatus.PreserveExpiryTime}
		s.LastOperation = v1alpha1.LastOperation{Type: op, State: state, Description: text, LastUpdateTime: metav1.NewTime(w.now)}
	})
}

// writeStatus changes the status of the current version of a machine.
func (w *World) writeStatus(m *v1alpha1.Machine, change func(*v1alpha1.MachineStatus)) {
	next := *m
	next.ResourceVersion = ""
	next.Status = *m.Status.DeepCopy()
	change(&next.Status)
	must(w.machines.write(byMachine, &next, status))
}

func (w *World) writeNode(n *corev1.Node, p part, change func(*corev1.Node)) {
	next := n.DeepCopy()
	next.ResourceVersion = ""
	change(next)
	must(w.nodes.write(byMachine, next, p))
}

// must panics on an error. A refused write of the World itself is a defect of this package.
func must(_ any, err error) {
	if err != nil {
		panic(err)
	}
}

// born creates the VM of a machine.
func (w *World) born(name string) {
	m := w.Machine(name)
	phase := m.Status.CurrentStatus.Phase
	if m.DeletionTimestamp != nil || phase != "" && phase != v1alpha1.MachineCrashLoopBackOff {
		return
	}
	if err := w.model.Create(m); err != nil {
		w.refuseVM(m, err)
		return
	}
	next := m.DeepCopy()
	next.ResourceVersion, next.Spec.ProviderID = "", "test:///"+name
	if !w.model.NoCluster {
		metav1.SetMetaDataLabel(&next.ObjectMeta, v1alpha1.NodeLabelKey, nodeNameOf(name))
	}
	must(w.machines.write(byMachine, next, metadataAndSpec))
	w.enter(w.Machine(name), v1alpha1.MachinePending, v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, "the VM exists")
	if after, ok := w.model.Join(m); ok {
		w.after(after, name, m.UID, (*World).join)
	}
}

// refuseVM records that the provider has failed, and tries again later.
func (w *World) refuseVM(m *v1alpha1.Machine, err error) {
	heap.Push(&w.events, event{at: w.now.Add(w.model.Retry), name: m.Name, uid: m.UID, what: (*World).born, vain: true})
	op := v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: codes.Of(err).String(),
		Description: err.Error(), LastUpdateTime: metav1.NewTime(w.now),
	}
	last, failing := m.Status.LastOperation, m.Status.CurrentStatus.Phase == v1alpha1.MachineCrashLoopBackOff
	if failing && last.ErrorCode == op.ErrorCode && last.Description == op.Description {
		return
	}
	w.say("%s cannot be created: %s", m.Name, err)
	w.writeStatus(m, func(s *v1alpha1.MachineStatus) {
		s.LastOperation = op
		if !failing {
			s.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineCrashLoopBackOff, LastUpdateTime: metav1.NewTime(w.now)}
		}
	})
}

// timeOut fails a machine that has not joined.
func (w *World) timeOut(name string) {
	m := w.Machine(name)
	switch phase := m.Status.CurrentStatus.Phase; {
	case m.DeletionTimestamp != nil:
	case phase == "", phase == v1alpha1.MachinePending, phase == v1alpha1.MachineCrashLoopBackOff:
		w.say("%s has not come up in time and is Failed", name)
		w.enter(m, v1alpha1.MachineFailed, v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, "it did not join in time")
	}
}

// correct replaces the phase Terminating of a machine that is not being deleted, as a machine
// controller does: the machine has a Node, or its creation is resumed.
func (w *World) correct(name string) {
	m := w.Machine(name)
	if m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating {
		return
	}
	w.say("%s is not being deleted", name)
	ready := func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.NodeInPlaceUpdate && c.Reason == v1alpha1.ReadyForUpdate
	}
	if n := w.Node(m); n != nil && slices.ContainsFunc(n.Status.Conditions, ready) {
		w.beginUpdate(name) // the Node shows that the update has begun
		return
	}
	if w.Node(m) != nil {
		w.enter(m, v1alpha1.MachineRunning, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateSuccessful, "it is healthy")
		return
	}
	w.enter(m, v1alpha1.MachineCrashLoopBackOff, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, "its creation is resumed")
	if w.model.CreationTimeout > 0 { // what would have failed it may have found it in another phase
		left := w.model.CreationTimeout - w.now.Sub(m.CreationTimestamp.Time)
		if left <= 0 {
			w.timeOut(name)
			return
		}
		w.after(left, name, m.UID, (*World).timeOut)
	}
	w.born(name)
}

// join makes a machine available.
func (w *World) join(name string) {
	m := w.Machine(name)
	if m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != v1alpha1.MachinePending {
		return
	}
	w.say("%s is available", name)
	if w.model.NoCluster {
		w.enter(m, v1alpha1.MachineAvailable, v1alpha1.MachineOperationCreate, v1alpha1.MachineStateSuccessful, "the VM runs")
		return
	}
	t := m.Spec.NodeTemplateSpec.DeepCopy()
	metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.MachineUIDAnnotation, string(m.UID))
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(w.now), LastTransitionTime: metav1.NewTime(w.now)}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(m), Labels: t.Labels, Annotations: t.Annotations},
		Spec:       corev1.NodeSpec{Taints: t.Spec.Taints, ProviderID: m.Spec.ProviderID},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}},
	}
	facts.HoldJoining(m, n)
	must(w.nodes.create(byMachine, n))
	w.writeStatus(m, func(s *v1alpha1.MachineStatus) {
		s.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineRunning, LastUpdateTime: metav1.NewTime(w.now)}
		s.LastOperation = v1alpha1.LastOperation{
			Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateSuccessful, Description: "it has joined", LastUpdateTime: metav1.NewTime(w.now),
		}
		s.Conditions = []corev1.NodeCondition{ready}
	})
}

// terminate begins the deletion of a machine.
func (w *World) terminate(name string) {
	m := w.Machine(name)
	w.say("%s is leaving", name)
	w.enter(m, v1alpha1.MachineTerminating, v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, "it is being deleted")
	w.after(w.model.Leave(m), name, m.UID, (*World).leave)
}

// leave ends a machine and its Node.
func (w *World) leave(name string) {
	m := w.Machine(name)
	w.say("%s is gone", name)
	if n := w.Node(m); n != nil {
		must(nil, w.nodes.remove(byMachine, n.Name, "", ""))
	}
	next := *m
	next.ResourceVersion, next.Finalizers = "", nil
	must(w.machines.write(byMachine, &next, metadataAndSpec))
}

// inState reports whether a machine has been in a phase since a time.
func inState(m *v1alpha1.Machine, phase v1alpha1.MachinePhase, since time.Time) bool {
	return m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == phase && m.Status.CurrentStatus.LastUpdateTime.Time.Equal(since)
}
