// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// find returns the object of a kind and name that was observed, or nil.
func (in Observation) find(kind, name string) metav1.Object {
	switch kind {
	case machine.KindSet:
		if i := slices.IndexFunc(in.Sets, func(s *v1alpha1.MachineSet) bool { return s != nil && s.Name == name }); i >= 0 {
			return in.Sets[i]
		}
	case machine.KindMachine:
		if i := slices.IndexFunc(in.Machines, func(m *v1alpha1.Machine) bool { return m != nil && m.Name == name }); i >= 0 {
			return in.Machines[i]
		}
	case machine.KindNode:
		return in.Nodes[name]
	}
	return nil
}

// expect holds the deployment until the caches show what was written.
func (c *pass) expect(pending machine.Expectations) {
	c.stop(ReasonWriteNotSeen, "the view does not show a write of "+strings.ToLower(pending[0].Kind)+" "+pending[0].Name+" yet")
	for _, x := range pending {
		due := x.At.Add(c.policy.unseen())
		switch {
		case due.After(c.now) && recorded.Known(x.At, c.now):
			c.look(due)
		case len(c.out.Actions) < c.policy.burst():
			c.add(Look{Kind: x.Kind, Name: x.Name})
		}
	}
}
