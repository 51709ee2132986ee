// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Observation is what is known about one deployment. On the zero Observation nothing is done.
type Observation struct {
	// Deployment to decide about. Read it live: a cache may hold a number of
	// replicas that was asked for, and withdrawn, before.
	Deployment *v1alpha1.MachineDeployment
	// Sets that the deployment owns, in any order; claiming them is the business
	// of the caller (see package machineset). Nil entries are skipped, and sets that
	// another object controls, or of another namespace, are left out and held.
	Sets []*v1alpha1.MachineSet
	// Released are the sets without a controller that the deployment has let go
	// because they lost their labels ([machineset.Claims.Released]). They are not its
	// own, and bound what it creates: while more than one of them has machines, no
	// other set is created. Nil entries are skipped.
	Released []*v1alpha1.MachineSet
	// Machines are those that the sets control, the failed and the leaving ones
	// included. Others may be among them and are left out. Nil entries are skipped.
	Machines []*v1alpha1.Machine
	// Complete says that Sets and Machines are all there are. Without that nothing
	// is done.
	Complete bool
	// Expectations are the writes of this process that Sets, Machines and Nodes have to
	// show. Nothing is done before they do.
	Expectations machine.Expectations
	// Nodes are the Nodes of the machines by name, from a cache. A missing name is a Node
	// that was not read, and is neither marked nor updated. Nil is a Node that does not
	// exist.
	Nodes map[string]*corev1.Node
	// NoCluster says that there is no cluster which machines join, so that there
	// are no Nodes. An update in place is not possible then.
	NoCluster bool
	// Freeze is what is known of the API servers. While there is a freeze, no set grows and
	// no rollout goes on; the condition ControllerFrozen says so.
	Freeze machine.Freeze
	// NameTakenBy is the set that has the name of a set which could not be
	// created for that reason, nil at all other times.
	NameTakenBy *v1alpha1.MachineSet
}

// nodeOf returns the Node of a machine, and whether it is known: nil and true is a Node
// that does not exist.
func (o Observation) nodeOf(m *v1alpha1.Machine) (*corev1.Node, bool) {
	name := m.Labels[v1alpha1.NodeLabelKey]
	if name == "" {
		return nil, false
	}
	n, known := o.Nodes[name]
	if n != nil && n.Name != name {
		return nil, false
	}
	return n, known
}

// find returns the object of a kind and name that was observed, or nil.
func (o Observation) find(kind, name string) metav1.Object {
	switch kind {
	case machine.KindSet:
		if i := slices.IndexFunc(o.Sets, func(s *v1alpha1.MachineSet) bool { return s != nil && s.Name == name }); i >= 0 {
			return o.Sets[i]
		}
	case machine.KindMachine:
		if i := slices.IndexFunc(o.Machines, func(m *v1alpha1.Machine) bool { return m != nil && m.Name == name }); i >= 0 {
			return o.Machines[i]
		}
	case machine.KindNode:
		return o.Nodes[name]
	}
	return nil
}
