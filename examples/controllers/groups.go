// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// groups finds the machines that share a replacement limit. It reads only the machines of the
// requested group.
type groups struct {
	set        func(namespace, name string) *v1alpha1.MachineSet // nil if there is none
	sets       func(group string) []*v1alpha1.MachineSet         // the sets of a group
	alone      func(group string) []*v1alpha1.Machine            // machines whose own labels name a group
	waiting    func(namespace string) []*v1alpha1.Machine        // machines that may wait for a limit
	machinesOf func(ownerKey string) []*v1alpha1.Machine
}

func newGroups(c *caches) *groups {
	api := c.machines.Machine().V1alpha1()
	g := &groups{
		set: func(_, _ string) *v1alpha1.MachineSet { return nil }, sets: func(string) []*v1alpha1.MachineSet { return nil }, machinesOf: c.machinesOf,
		alone: index(api.Machines().Informer(), "group-of-machine", func(m *v1alpha1.Machine) []string {
			return []string{machine.GroupOf(m, nil).String()}
		}),
		waiting: index(api.Machines().Informer(), "waiting-for-limit", func(m *v1alpha1.Machine) []string {
			if machine.NeedsSiblings(m) {
				return []string{m.Namespace}
			}
			return nil
		}),
	}
	if c.part == MachinesAlone {
		return g
	}
	lister := api.MachineSets().Lister()
	g.set = func(namespace, name string) *v1alpha1.MachineSet {
		return orNil(lister.MachineSets(namespace).Get(name))
	}
	g.sets = index(api.MachineSets().Informer(), "group-of-set", func(s *v1alpha1.MachineSet) []string {
		return []string{groupOfSet(s).String()}
	})
	return g
}

// groupOfSet returns the group of the machines that a set creates.
func groupOfSet(s *v1alpha1.MachineSet) machine.Group {
	return machine.GroupOf(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Labels: s.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{machineset.OwnerSet(s).Reference()},
	}}, s)
}

// of returns the group of a machine.
func (g *groups) of(m *v1alpha1.Machine) machine.Group {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return machine.GroupOf(m, g.set(m.Namespace, owner.Name))
	}
	return machine.GroupOf(m, nil)
}

// waitingWith returns the machines of the group of m that may wait for its limit.
func (g *groups) waitingWith(m *v1alpha1.Machine) []*v1alpha1.Machine {
	waiting := g.waiting(m.Namespace)
	if len(waiting) == 0 {
		return nil
	}
	group := g.of(m)
	return slices.DeleteFunc(waiting, func(other *v1alpha1.Machine) bool { return group == machine.Group{} || g.of(other) != group })
}

// siblings returns the machines of the group of m in the cache.
func (g *groups) siblings(m *v1alpha1.Machine) machine.Siblings {
	key := g.of(m).String()
	if key == "" { // there is no limit
		return machine.Siblings{Complete: true}
	}
	found := g.alone(key)
	for _, set := range g.sets(key) {
		for _, sibling := range g.machinesOf(string(set.UID)) {
			if machine.GroupOf(sibling, nil).String() != key { // otherwise alone has returned it
				found = append(found, sibling)
			}
		}
	}
	return g.among(m, found)
}

// among returns those of the given machines that are in the group of m, and the number of missing
// machines.
func (g *groups) among(m *v1alpha1.Machine, machines []*v1alpha1.Machine) machine.Siblings {
	group := g.of(m)
	found := slices.DeleteFunc(machines, func(other *v1alpha1.Machine) bool { return g.of(other) != group })
	return machine.Siblings{Complete: true, Group: group, Machines: found, Missing: machineset.Missing(g.sets(group.String()), found)}
}
