// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Observation is what is known about one set. Neither [Plan] nor [Status]
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
	// and bound what it creates; see [Policy.Replaced].
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
}

// A Policy bounds one decision. The zero Policy has the defaults.
type Policy struct {
	// Burst is how many machines a pass creates or deletes at most. Below 1 means
	// [DefaultBurst].
	Burst int
	// Order is the order in which machines go, if the set has too many and nobody
	// named one. Nil means [DeletionOrder].
	Order Order
	// Replaced is how many machines that lost their labels and were released are
	// replaced while they still exist: whatever takes away labels, and however often,
	// a set and what it has released are never more machines than it wants and so
	// many. 0 means [DefaultReplaced], below 0 none.
	Replaced int
	// Unseen is how long the cache may take to show an effect before the machine
	// is looked at live. It has to be longer than an API call may take, lest a
	// creation be given up that is still to happen. Not above 0 means
	// [DefaultUnseen].
	Unseen time.Duration
	// Recheck is when to look again at something that holds and says no time of
	// its own. Not above 0 means [DefaultRecheck].
	Recheck time.Duration
}

// Defaults of a [Policy]; the first and the last are those of the reference
// system.
const (
	DefaultBurst    = 100
	DefaultReplaced = 3
	DefaultUnseen   = 2 * time.Minute
	DefaultRecheck  = 10 * time.Minute
)

func (p Policy) withDefaults() Policy {
	if p.Burst < 1 {
		p.Burst = DefaultBurst
	}
	if p.Replaced == 0 {
		p.Replaced = DefaultReplaced
	}
	p.Replaced = max(0, p.Replaced)
	if p.Unseen <= 0 {
		p.Unseen = DefaultUnseen
	}
	if p.Recheck <= 0 {
		p.Recheck = DefaultRecheck
	}
	return p
}

// order is that in which machines go at the instant now.
func (p Policy) order(now time.Time) Order {
	if p.Order != nil {
		return p.Order
	}
	return DeletionOrder(now)
}

// A Decision is what to do now for one set, why the rest is not done, and when
// to ask again.
type Decision struct {
	// Actions are in the order in which they are to be carried out: finalizer,
	// Syncs, Looks, then Deletes or one Create. If that of the finalizer fails,
	// leave out the others; they do not depend on each other.
	Actions []Action
	// Holds are what is not done, and why.
	Holds []machinist.Hold
	// Reason sums the decision up: that of the first Delete or Create, else of the
	// first action, else of the first hold, else [ReasonSettled] or [ReasonGone].
	Reason machinist.Reason
	// NextCheck is when to ask again, after now; zero if only a change of an
	// object can help. A decision with actions or holds always has one.
	NextCheck time.Time
}
