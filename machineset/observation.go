// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Observation is what is known about one set. Neither [Decide] nor [Status]
// modifies it or keeps anything of it. The zero Observation is that of a world
// which nobody has looked at: nothing is done on it.
type Observation struct {
	// Set is the set. Read it live: a cache may hold a number of replicas that
	// was asked for, and withdrawn, before.
	Set *v1alpha1.MachineSet
	// Machines are the machines of the set, as [Claim] tells them: those that
	// have it as their controller and that it selects, the failed and the leaving
	// ones included. Nil machines, and machines that are in another namespace or
	// that another object controls, are left out of every count.
	Machines []*v1alpha1.Machine
	// Complete says that Machines is known to be whole: the cache has synced, and
	// nothing is left to be adopted or released ([Claims.Settled]). Unless it is,
	// nothing is created or deleted.
	Complete bool
	// Released are the machines without a controller that this set has let go
	// because they lost their labels ([Claims.Released]). They are not the set's,
	// and bound what it creates: while they exist, at most 3 of them are replaced.
	Released []*v1alpha1.Machine
	// Expectations are the creations and deletions of this process that the cache may
	// not show yet.
	Expectations machine.Expectations
	// NeverJoined are the machines that were deleted before they had joined.
	NeverJoined NeverJoined
	// Nodes holds what is known about the Nodes of Failed machines, by the name in
	// the machine's label. A name that is absent is a Node that nobody has looked
	// at; its machine stays.
	Nodes map[string]machine.NodeView
	// Freeze is what is known of the API servers. While there is a freeze, no machine is
	// created and no Failed machine is replaced.
	Freeze machine.Freeze
}

// A Policy bounds one decision. The zero Policy has the defaults.
type Policy struct {
	// Burst is how many machines a pass creates or deletes at most. Below 1 means
	// 100, as in the reference system.
	Burst int
	// Order is the order in which machines go, if the set has too many and none is
	// named. Nil means [DeletionOrder].
	Order Order
}

func (p Policy) burst() int {
	if p.Burst < 1 {
		return 100
	}
	return p.Burst
}

// order is that in which machines go at the instant now.
func (p Policy) order(now time.Time) Order {
	if p.Order != nil {
		return p.Order
	}
	return DeletionOrder(now)
}
