// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// observation is a view of the world that fits the statuses of its sets: the new
// set first, then the old ones, and their machines with a Node each.
func (g world) observation() deployment.Observation {
	in := deployment.Observation{Deployment: g.MachineDeployment.object(), Complete: true, Nodes: map[string]*corev1.Node{}}
	if s := g.NewMS.object(); s != nil {
		in.Sets = append(in.Sets, s)
		s.Spec.Template.Spec.Class = in.Deployment.Spec.Template.Spec.Class
	}
	for _, s := range setsOf(g.OldMSs) {
		in.Sets = append(in.Sets, s)
		if s.Spec.Template.Spec.Class.Name == in.Deployment.Spec.Template.Spec.Class.Name {
			s.Spec.Template.Spec.Class.Name = "before"
		}
	}
	for _, s := range in.Sets {
		s.Annotations = maps.Clone(s.Annotations)
		in.Machines = slices.Concat(in.Machines, machinesFor(s))
	}
	for _, m := range in.Machines {
		n := nodeFor(m)
		in.Nodes[n.Name] = n
	}
	return in
}

// machinesFor makes as many machines as the status of a set tells of: available
// ones are Running, the others Pending.
func machinesFor(s *v1alpha1.MachineSet) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for i := range s.Status.Replicas {
		name := fmt.Sprintf("%s-m%d", s.Name, i)
		phase := v1alpha1.MachineRunning
		if i >= s.Status.AvailableReplicas {
			phase = v1alpha1.MachinePending
		}
		out = append(out, machine{Name: name, Phase: phase, Labels: s.Spec.Selector.MatchLabels, Owner: s.Name, Node: "node-" + name}.object())
	}
	return out
}

func nodeFor(m *v1alpha1.Machine) *corev1.Node {
	n := &corev1.Node{}
	n.Name = m.Labels[v1alpha1.NodeLabelKey]
	return n
}
