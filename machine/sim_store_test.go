// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// store is an API server for a few Machines and Nodes: versions that conflict, a
// status subresource, finalizers, and times without fractions.
type store struct {
	now      func() time.Time
	version  int
	machines map[string]*v1alpha1.Machine
	before   map[string]*v1alpha1.Machine // one version older
	nodes    map[string]*corev1.Node
	// watch is told the name of every machine that it concerns.
	watch func(machine string)
	// released is asked before the last finalizer of a machine goes.
	released func(m *v1alpha1.Machine)
	broken   func(format string, args ...any)
}

func newStore(now func() time.Time) *store {
	return &store{
		now: now, machines: map[string]*v1alpha1.Machine{},
		before: map[string]*v1alpha1.Machine{}, nodes: map[string]*corev1.Node{},
	}
}

func gone(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, name)
}

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, name, fmt.Errorf("has changed"))
}

func (s *store) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *store) create(m *v1alpha1.Machine) {
	m = m.DeepCopy()
	m.CreationTimestamp = metav1.NewTime(s.now()).Rfc3339Copy()
	m.ResourceVersion = s.next()
	s.machines[m.Name] = m
	s.watch(m.Name)
}

// current returns the machine if the one given is up to date.
func (s *store) current(m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
	have := s.machines[m.Name]
	switch {
	case have == nil || have.UID != m.UID:
		return nil, gone(m.Name)
	case have.ResourceVersion != m.ResourceVersion:
		return nil, conflict(m.Name)
	}
	return have.DeepCopy(), nil
}

func (s *store) put(m *v1alpha1.Machine) *v1alpha1.Machine {
	s.before[m.Name] = s.machines[m.Name]
	m.ResourceVersion = s.next()
	s.machines[m.Name] = m
	if !m.DeletionTimestamp.IsZero() && len(m.Finalizers) == 0 {
		delete(s.machines, m.Name)
	}
	s.watch(m.Name)
	return m.DeepCopy()
}

// update stores metadata and spec, and ignores the status.
func (s *store) update(m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
	have, err := s.current(m)
	if err != nil {
		return nil, err
	}
	if have.Spec.ProviderID != "" && have.Spec.ProviderID != m.Spec.ProviderID {
		s.broken("the provider ID of %s changes from %q to %q", m.Name, have.Spec.ProviderID, m.Spec.ProviderID)
	}
	ours := v1alpha1.MCMFinalizerName
	if slices.Contains(have.Finalizers, ours) && !slices.Contains(m.Finalizers, ours) {
		s.released(have)
	}
	if !have.DeletionTimestamp.IsZero() && len(m.Finalizers) > len(have.Finalizers) {
		return nil, apierrors.NewForbidden(schema.GroupResource{}, m.Name, fmt.Errorf("no new finalizers on an object that is being deleted"))
	}
	wanted := m.DeepCopy()
	have.Labels, have.Annotations, have.Finalizers, have.Spec = wanted.Labels, wanted.Annotations, wanted.Finalizers, wanted.Spec
	return s.put(have), nil
}

// updateStatus stores the status and ignores the rest.
func (s *store) updateStatus(m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
	have, err := s.current(m)
	if err != nil {
		return nil, err
	}
	have.Status = m.DeepCopy().Status
	status := &have.Status
	for _, t := range []*metav1.Time{&status.LastOperation.LastUpdateTime, &status.CurrentStatus.LastUpdateTime} {
		*t = t.Rfc3339Copy()
	}
	return s.put(have), nil
}

// remove asks for the deletion of a machine.
func (s *store) remove(name string) {
	have := s.machines[name]
	if have == nil || !have.DeletionTimestamp.IsZero() {
		return
	}
	have = have.DeepCopy()
	now := metav1.NewTime(s.now()).Rfc3339Copy()
	have.DeletionTimestamp = &now
	s.put(have)
}

func (s *store) concerned(node string) {
	for _, m := range s.machines {
		if m.Labels[v1alpha1.NodeLabelKey] == node {
			s.watch(m.Name)
		}
	}
}

// join is what a kubelet does.
func (s *store) join(name, uid string) {
	s.nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: machineUID(uid), ResourceVersion: s.next()},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now())},
		}},
	}
	s.concerned(name)
}

func (s *store) node(name string) *corev1.Node { return s.nodes[name].DeepCopy() }

// edit changes a Node, of the version given if that is not empty.
func (s *store) edit(name, version string, change func(*corev1.Node)) error {
	have := s.nodes[name]
	switch {
	case have == nil:
		return gone(name)
	case version != "" && have.ResourceVersion != version:
		return conflict(name)
	}
	have = have.DeepCopy()
	change(have)
	have.ResourceVersion = s.next()
	s.nodes[name] = have
	s.concerned(name)
	return nil
}

func (s *store) deleteNode(a machine.DeleteNode) error {
	have := s.nodes[a.NodeName]
	if have == nil || have.UID != a.UID {
		return nil
	}
	released := patched(have)
	s.nodes[a.NodeName] = released
	if len(released.Finalizers) == 0 {
		delete(s.nodes, a.NodeName)
	}
	s.concerned(a.NodeName)
	return nil
}
