// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// applyChange makes the change of the scenario in a deployment.
func (s scenario) applyChange(d *v1alpha1.MachineDeployment) {
	next := s.to.DeepCopy()
	d.Spec = next.Spec
	for key, value := range next.Labels {
		metav1.SetMetaDataLabel(&d.ObjectMeta, key, value)
	}
	for key, value := range next.Annotations {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
	}
}

// applyEvent carries out an event.
func (s *simulation) applyEvent(e event) error {
	switch e.kind {
	case eventQuota:
		s.provider.quota = e.number
		return nil
	case eventDelete:
		m, err := s.machine(e.name)
		if err != nil {
			return err
		}
		return s.world.DeleteMachine(m.Name)
	case eventSelect:
		return s.selectNodes(e.name)
	default:
		var err error
		return errors.Join(s.world.Edit(func(d *v1alpha1.MachineDeployment) { err = e.edit(d) }), err)
	}
}

// edit changes a deployment.
func (e event) edit(d *v1alpha1.MachineDeployment) error {
	bounds := boundsOf(d)
	switch e.kind {
	case eventReplicas:
		d.Spec.Replicas = int32(e.number)
	case eventClass:
		d.Spec.Template.Spec.Class.Name = e.name
	case eventPause, eventResume:
		d.Spec.Paused = e.kind == eventPause
	case eventRollback:
		d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: e.number}
	case eventSurge, eventUnavailable:
		if bounds == nil {
			return errNoBounds
		}
		bound := e.bound
		if e.kind == eventSurge {
			bounds.MaxSurge = &bound
		} else {
			bounds.MaxUnavailable = &bound
		}
	default: // not about the deployment
	}
	return nil
}

// Names that stand for one machine, or for all.
const (
	oldest = "oldest"
	newest = "newest"
	all    = "all"
)

// machine returns the machine with a name.
func (s *simulation) machine(name string) (*v1alpha1.Machine, error) {
	machines := slices.DeleteFunc(s.world.Machines(), func(m *v1alpha1.Machine) bool {
		return m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating
	})
	switch {
	case name != oldest && name != newest:
		if m := s.world.Machine(name); m != nil {
			return m, nil
		}
	case len(machines) > 0 && name == oldest:
		return machines[0], nil
	case len(machines) > 0:
		return machines[len(machines)-1], nil
	}
	return nil, errors.New("machine not found")
}

// selectNodes labels the Node of a machine, or those of all candidates, as selected for an update
// in place.
func (s *simulation) selectNodes(name string) error {
	nodes := slices.DeleteFunc(s.world.Nodes(), func(n *corev1.Node) bool {
		return n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] == ""
	})
	if name != all {
		m, err := s.machine(name)
		if err != nil {
			return err
		}
		n := s.world.Node(m)
		if n == nil {
			return fmt.Errorf("machine %s has no Node", m.Name)
		}
		nodes = []*corev1.Node{n}
	}
	for _, n := range nodes {
		err := s.world.EditNode(n.Name, func(n *corev1.Node) {
			metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.LabelKeyNodeSelectedForUpdate, "true")
		})
		if err != nil {
			return err
		}
	}
	return nil
}
