// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Observation is what is known about one deployment. The zero Observation has no effect.
type Observation struct {
	// Deployment is the deployment. Read it from the API server: a cache may have a former number
	// of replicas.
	Deployment *v1alpha1.MachineDeployment
	// Sets are the sets of the deployment, in any order, after [Claim]. Nil sets are
	// skipped. Sets in another namespace or of another controller are held.
	Sets []*v1alpha1.MachineSet
	// Released are the sets that the deployment released because their labels no longer match
	// ([machineset.Claims.Released]). No set is created while more than one of them has machines.
	// Nil sets are skipped.
	Released []*v1alpha1.MachineSet
	// Machines are the machines of the sets, including failed and terminating ones. Nil machines
	// and machines of other owners are skipped.
	Machines []*v1alpha1.Machine
	// Complete means that Sets and Machines are complete. Nothing is done otherwise.
	Complete bool
	// Proven means that Sets and Machines are no older than the last write of an earlier process for
	// the deployment: since a live list, or because this process has added the finalizer of the
	// deployment. Otherwise no set, machine or deployment is written, and a list is requested
	// instead. Only the finalizer is added.
	Proven bool
	// Expectations are the writes of this process that Sets, Machines and Nodes must show before
	// anything is done.
	Expectations machine.Expectations
	// Nodes are the Nodes of the machines by name, from a cache. A nil Node does not exist. A
	// missing name means that the Node was not read; it is neither written nor updated.
	Nodes map[string]*corev1.Node
	// NoCluster means that the machines join no cluster, so that there are no Nodes and no updates
	// in place.
	NoCluster bool
	// Freeze is what is known about the API servers. During a freeze no set grows and no rollout
	// continues, and the condition ControllerFrozen says so.
	Freeze machine.Freeze
	// NameTakenBy is the set with the name of a new set whose creation failed because the name is taken.
	// Nil means none.
	NameTakenBy *v1alpha1.MachineSet
}

// nodeOf returns the Node of a machine, and whether it is known. A nil Node that is known does not
// exist. A Node that is not proven to be that of the machine is not known.
func (o Observation) nodeOf(m *v1alpha1.Machine) (*corev1.Node, bool) {
	name := m.Labels[v1alpha1.NodeLabelKey]
	if name == "" {
		return nil, false
	}
	n, known := o.Nodes[name]
	if n != nil && (n.Name != name || !facts.Proven(m, n)) {
		return nil, false
	}
	return n, known
}

// find returns the observed object of a kind and name, or nil.
func (o Observation) find(kind, name string) metav1.Object {
	switch kind {
	case v1alpha1.MachineSetKind:
		if i := slices.IndexFunc(o.Sets, func(s *v1alpha1.MachineSet) bool { return s != nil && s.Name == name }); i >= 0 {
			return o.Sets[i]
		}
	case v1alpha1.MachineKind:
		if i := slices.IndexFunc(o.Machines, func(m *v1alpha1.Machine) bool { return m != nil && m.Name == name }); i >= 0 {
			return o.Machines[i]
		}
	case facts.NodeKind:
		return o.Nodes[name]
	}
	return nil
}
