// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// waitingWith returns the machines of the group of m that may wait for its limit.
func waitingWith(ctx context.Context, r machinist.Reader, m *v1alpha1.Machine) []*v1alpha1.Machine {
	waiting, err := machinesBy(ctx, r, runners.ByWaiting, m.Namespace)
	if err != nil || len(waiting) == 0 {
		return nil
	}
	group := runners.GroupOf(ctx, r, m)
	if group == (facts.Group{}) {
		return nil
	}
	return inGroup(ctx, r, group, waiting)
}

// inGroup returns those of the machines that are in a group.
func inGroup(ctx context.Context, r machinist.Reader, group facts.Group, machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(m *v1alpha1.Machine) bool { return runners.GroupOf(ctx, r, m) != group })
}

// SiblingsOf returns the machines of the group of a machine. They are not complete after an error.
func (e *Executor) SiblingsOf(ctx context.Context, m *v1alpha1.Machine) machine.Siblings {
	r := e.Reader
	if r == nil || m == nil {
		return machine.Siblings{}
	}
	group := runners.GroupOf(ctx, r, m)
	if group == (facts.Group{}) { // there is no limit
		return machine.Siblings{Complete: true}
	}
	found, err := machinesBy(ctx, r, runners.ByGroup, group.String())
	if err != nil {
		return machine.Siblings{}
	}
	sets, err := objects.List[*v1alpha1.MachineSet](ctx, r, runners.ByGroup, group.String())
	if err != nil {
		return machine.Siblings{}
	}
	for _, set := range sets {
		machines, err := machinesBy(ctx, r, runners.ByController, runners.ControllerKey(set.Namespace, set.UID))
		if err != nil {
			return machine.Siblings{}
		}
		for _, m := range machines {
			if facts.GroupOf(m, nil) != group { // otherwise it is in the index
				found = append(found, m)
			}
		}
	}
	return among(ctx, r, m, found)
}

// among returns those of the given machines that are in the group of m, and the number of missing
// machines.
func among(ctx context.Context, r machinist.Reader, m *v1alpha1.Machine, machines []*v1alpha1.Machine) machine.Siblings {
	set, _ := runners.Owner[*v1alpha1.MachineSet](ctx, r, m)
	group := facts.GroupOf(m, set)
	sets, err := objects.List[*v1alpha1.MachineSet](ctx, r, runners.ByGroup, group.String())
	found := inGroup(ctx, r, group, machines)
	return machine.Siblings{Complete: err == nil, Set: set, Machines: found, Missing: members.Missing(sets, found)}
}
