// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// demand counts the machines among those that go which their sets will let go
// because of what this pass has written so far: marks on machines, and the time of
// the last change of the replicas on a set.
func (c *pass) demand() {
	for _, a := range c.accounts {
		const key = v1alpha1.LastDeploymentReplicaChangeByScalerTime
		if len(c.wanted) == 0 && a.next.Annotations[key] == a.set.Annotations[key] {
			continue
		}
		stay := make([]*v1alpha1.Machine, 0, len(a.stay))
		for _, m := range a.stay {
			if !machineset.NamedByAutoscaler(a.next, c.edited(m)) {
				stay = append(stay, m)
				continue
			}
			a.goers = append(a.goers, machineset.Victim{Machine: m, By: machineset.ByDemand})
			if c.available(a, m) {
				a.available--
			}
		}
		a.stay, a.victims = stay, a.goers
		a.exposed = slices.DeleteFunc(a.exposed, func(m *v1alpha1.Machine) bool { // those go anyway
			return machineset.NamedByAutoscaler(a.next, c.edited(m))
		})
	}
}

// edited returns a machine as this pass has left it so far.
func (c *pass) edited(m *v1alpha1.Machine) *v1alpha1.Machine {
	if e := c.edits.machines[m.Name]; e != nil && e.before.UID == m.UID {
		return e.next
	}
	return m
}

// demanded counts the machines of a set that somebody wants gone, and for which it
// has not become smaller.
func (c *pass) demanded(a *account) int64 {
	var n int64
	for _, v := range a.goers {
		if v.By == machineset.ByDemand {
			n++
		}
	}
	for _, m := range a.stay {
		if c.wanted[m.UID] {
			n++
		}
	}
	return min(n, a.spec)
}
