// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	mounts   map[string][]*mount // by Node
	tokens   map[string]*corev1.Secret
	// watch is told the name of every machine that it concerns.
	watch func(machine string)
	// released is asked before the last finalizer of a machine goes.
	released func(m *v1alpha1.Machine)
	broken   func(format string, args ...any)
}

func newStore(now func() time.Time) *store {
	return &store{
		now: now, machines: map[string]*v1alpha1.Machine{},
		before: map[string]*v1alpha1.Machine{}, nodes: map[string]*corev1.Node{}, mounts: map[string][]*mount{}, tokens: map[string]*corev1.Secret{},
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
	if err == nil {
		err = refused(m)
	}
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
		if s.nodeOf(m) == node {
			s.watch(m.Name)
		}
	}
}

// nodeOf returns the name of the Node of a machine, which a label or else its provider
// ID stands for, or "" for none.
func (s *store) nodeOf(m *v1alpha1.Machine) string {
	if label := m.Labels[v1alpha1.NodeLabelKey]; label != "" || m.Spec.ProviderID == "" {
		return label
	}
	for name, node := range s.nodes {
		if node.Spec.ProviderID == m.Spec.ProviderID {
			return name
		}
	}
	return ""
}

// refused returns the error of a label that the API server does not take.
func refused(m *v1alpha1.Machine) error {
	if errs := metav1validation.ValidateLabels(m.Labels, field.NewPath("metadata", "labels")); len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Machine").GroupKind(), m.Name, errs)
	}
	return nil
}

// join is what a kubelet does.
func (s *store) join(name, uid string) {
	s.nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: machineUID(uid), ResourceVersion: s.next()},
		Spec:       corev1.NodeSpec{ProviderID: uid},
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
		delete(s.mounts, a.NodeName)
	}
	s.concerned(a.NodeName)
	return nil
}

// createToken makes a bootstrap token of a machine.
func (s *store) createToken(m *v1alpha1.Machine, expires time.Time, random io.Reader) error {
	secret, err := machine.NewBootstrapToken(m, expires, nil, random)
	if err != nil {
		return err
	}
	secret.UID = machineUID(s.next())
	s.tokens[secret.Name] = secret
	return nil
}

// tokensOf returns the bootstrap tokens of a machine.
func (s *store) tokensOf(owner types.UID) []*corev1.Secret {
	var own []*corev1.Secret
	for _, secret := range s.tokens {
		if machine.TokenOwner(secret) == owner {
			own = append(own, secret.DeepCopy())
		}
	}
	return own
}

// mount is a volume that is attached to a Node.
type mount struct {
	*storagev1.VolumeAttachment
	stays bool      // the pod that uses it is not drained
	gone  time.Time // when it is detached; zero is not known
}

// attach attaches volumes to a Node.
func (s *store) attach(node string, v volumes) {
	for i := range v.detach + v.stay {
		name := fmt.Sprint("csi-", node, "-", i)
		s.mounts[node] = append(s.mounts[node], &mount{stays: i >= v.detach, VolumeAttachment: &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: machineUID("uid-" + name)},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: node},
		}})
	}
}

// attached returns the attachments of a Node.
func (s *store) attached(node string) []*storagev1.VolumeAttachment {
	var all []*storagev1.VolumeAttachment
	for _, m := range s.mounts[node] {
		all = append(all, m.DeepCopy())
	}
	return all
}

// moving returns the attachments of a Node whose pods are drained.
func (s *store) moving(node string) []*storagev1.VolumeAttachment {
	var all []*storagev1.VolumeAttachment
	for _, m := range s.mounts[node] {
		if !m.stays {
			all = append(all, m.DeepCopy())
		}
	}
	return all
}

// unmount says that the pods have gone, so that the attacher will detach their
// volumes.
func (s *store) unmount(node string, after time.Duration) {
	for _, m := range s.mounts[node] {
		if !m.stays && m.gone.IsZero() {
			m.gone = s.now().Add(after)
		}
	}
}

// deleteAttachments marks them; as the Node does not answer, they stay.
func (s *store) deleteAttachments(a machine.DeleteAttachments) error {
	for _, mounts := range s.mounts {
		for _, m := range mounts {
			if slices.Contains(a.Attachments, machine.Attachment{Name: m.Name, UID: m.UID}) {
				m.VolumeAttachment = m.DeepCopy()
				m.DeletionTimestamp = &metav1.Time{Time: s.now()}
				s.concerned(m.Spec.NodeName)
			}
		}
	}
	return nil
}

// detach detaches what is due.
func (s *store) detach() {
	for node, mounts := range s.mounts {
		due := func(m *mount) bool { return !m.gone.IsZero() && !s.now().Before(m.gone) }
		if slices.ContainsFunc(mounts, due) {
			s.mounts[node] = slices.DeleteFunc(mounts, due)
			s.concerned(node)
		}
	}
}

// nextDetach returns when the next volume is detached; zero means never.
func (s *store) nextDetach() time.Time {
	var next time.Time
	for _, mounts := range s.mounts {
		for _, m := range mounts {
			if !m.gone.IsZero() && (next.IsZero() || m.gone.Before(next)) {
				next = m.gone
			}
		}
	}
	return next
}
