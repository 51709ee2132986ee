// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Observation is what is known about one set. [Decide] and [Status] do not change it and keep no
// reference to it. On the zero Observation nothing is done.
type Observation struct {
	// Set is the set as read from the API server: a cache may have replicas of the past.
	Set *v1alpha1.MachineSet
	// Machines are the owned machines ([Claims.Owned]), including those that failed or are leaving.
	// Nil machines, and machines of another namespace or controller, do not count.
	Machines []*v1alpha1.Machine
	// Complete means that Machines are all machines of the set: the cache has synced, and nothing
	// has to be adopted or released ([Claims.Settled]). Otherwise nothing is created or deleted.
	Complete bool
	// Proven means that Machines are no older than the last write of an earlier process for the set:
	// since a live list, or because this process has added the finalizer of the set. Otherwise
	// nothing is created or deleted for a set with the finalizer, no new generation is observed, and a
	// live list is requested.
	Proven bool
	// Released are the machines without a controller that this set released because they lost their
	// labels ([Claims.Released]). While they exist, at most 3 of them are replaced.
	Released []*v1alpha1.Machine
	// Expectations are the creations and deletions of this process that the cache may not show yet.
	Expectations machine.Expectations
	// NeverJoined are the machines that were deleted before their Nodes joined.
	NeverJoined NeverJoined
	// Nodes are the Nodes of Failed machines, by the name in the label of the machine. A missing
	// name means that the Node was not read; its machine stays.
	Nodes map[string]machine.NodeView
	// Freeze is whether the API servers answer. During a freeze no machine is created and no Failed
	// machine is replaced.
	Freeze machine.Freeze
}

// Order is the order in which machines are deleted: a list of criteria, each with a Name and the Rank
// of a machine. Machines with lower ranks are deleted earlier. The first criterion that ranks two
// machines differently decides, then their names, then their UIDs. The nil Order is by name.
type Order = members.Order

// Victim is a chosen Machine. By is the name of the criterion that ranks it before the first machine
// that stays, "NamedByAutoscaler" or "NamedByPlan". It is empty if no machine stays.
type Victim = members.Victim

// Policy bounds one decision. The zero Policy has the defaults.
type Policy struct {
	// Burst is how many machines a decision creates or deletes at most. Below 1 means 100, as in
	// MCM.
	Burst int
	// Order is the order in which surplus machines are deleted. Nil means: preserved machines last,
	// then the lowest priority, the earliest mark of an autoscaler, the worst health, the greatest
	// age.
	Order Order
}

func (p Policy) burst() int {
	if p.Burst < 1 {
		return 100
	}
	return p.Burst
}

// order returns the order in which machines are deleted at now.
func (p Policy) order(now time.Time) Order {
	if p.Order != nil {
		return p.Order
	}
	return members.DeletionOrder(now)
}
