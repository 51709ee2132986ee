// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/machinist-dev/machinist/machineset"
)

// A Policy is how to decide. The zero value is the cautious one.
type Policy struct {
	// Recheck is when to look again after a decision with actions, which may all
	// get lost. Zero and negative: 30 seconds.
	Recheck time.Duration
	// Unseen is how long caches may take to show a write before the object is
	// looked at live. Zero and negative: 30 seconds.
	Unseen time.Duration
	// Burst is how many Nodes and machines a pass writes at most; the rest is for
	// the next one. Zero and negative: 100.
	Burst int
	// Order is the order in which machines are chosen, beside that those go first
	// that somebody named, and then unavailable ones. It has to be that of the sets
	// as well ([machineset.Policy.Order]), as they choose by it when fewer are named
	// than go. Nil means [machineset.DeletionOrder].
	Order machineset.Order
	// Gates are asked, one after the other, about every machine that was chosen to
	// be replaced or updated; all have to allow it. They are not asked about
	// machines that go because fewer are wanted. None: every machine is allowed.
	Gates []Gate
	// ByLabel adds [SelectedByLabel] to the gates, and marks the Nodes of old
	// machines as candidates whatever the strategy.
	ByLabel bool
	// OnNoCapacity says how a roll-out goes on while the provider has no capacity
	// for a machine of the new set. Empty: [NoCapacityWait].
	OnNoCapacity NoCapacity
	// Discourage says how the Nodes of old sets are made less attractive to pods
	// during a roll-out. Empty: [DiscouragePreferNoSchedule], as in the reference
	// system.
	Discourage Discourage
	// HoldAutoscaler keeps the cluster autoscaler from removing the Nodes of the
	// deployment during a roll-out, and while it is paused, by annotations. In the reference system it is
	// on unless a flag says otherwise.
	HoldAutoscaler bool
}

// NoCapacity is what to do while the provider has no capacity for new machines
// (code ResourceExhausted).
type NoCapacity string

const (
	// NoCapacityWait waits for capacity: whatever else the bounds allow goes on. If
	// maxUnavailable is 0 that is nothing, and the roll-out stands until there is some.
	NoCapacityWait NoCapacity = "Wait"
	// NoCapacityUseUnavailable gives up one old machine at a time, even if
	// maxUnavailable is 0, so that the new one can have its place. Never more than
	// one of the replicas is unavailable for it, beyond what the bounds allow.
	NoCapacityUseUnavailable NoCapacity = "UseUnavailable"
	// NoCapacityStop replaces nothing more until there is capacity. Changes of the
	// replicas are still carried out.
	NoCapacityStop NoCapacity = "Stop"
)

// Discourage is how Nodes of old sets are made less attractive.
type Discourage string

const (
	// DiscourageNone leaves the Nodes alone.
	DiscourageNone Discourage = "None"
	// DiscouragePreferNoSchedule taints them, so that pods go elsewhere if they can.
	DiscouragePreferNoSchedule Discourage = "PreferNoSchedule"
	// DiscourageNoSchedule taints them, so that new pods do not come. If the new
	// machines are not ready yet, pods stay pending. A cordon, which says the same,
	// would also take the Nodes away from load balancers, and is not on offer.
	DiscourageNoSchedule Discourage = "NoSchedule"
)

const (
	defaultRecheck = 30 * time.Second
	defaultUnseen  = 30 * time.Second
	defaultBurst   = 100
)

func (p Policy) recheck() time.Duration {
	if p.Recheck <= 0 {
		return defaultRecheck
	}
	return p.Recheck
}

func (p Policy) unseen() time.Duration {
	if p.Unseen <= 0 {
		return defaultUnseen
	}
	return p.Unseen
}

func (p Policy) burst() int {
	if p.Burst <= 0 {
		return defaultBurst
	}
	return p.Burst
}

func (p Policy) order(now time.Time) machineset.Order {
	if p.Order == nil {
		return machineset.DeletionOrder(now)
	}
	return p.Order
}
