// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A Policy is how to decide. The zero value is the cautious one.
type Policy struct {
	// Unseen is how long caches may take to show a write before the object is
	// looked at live. Zero and negative: 30 seconds.
	Unseen time.Duration
	// Burst is how many Nodes and machines one decision writes at most. The rest is for
	// the next one. Zero and negative: 100.
	Burst int
	// Order is the order in which machines are chosen, after those that a user or an
	// autoscaler named, and then unavailable ones. It has to be that of the sets
	// ([machineset.Policy.Order]), as they choose by it when fewer are named than go.
	// Nil means [machineset.DeletionOrder].
	Order machineset.Order
	// Gates are asked about every machine that was chosen to be replaced or updated. All
	// have to allow it. They are not asked about machines that go because fewer are
	// wanted. None: every machine is allowed.
	Gates []Gate
	// FreeCapacity gives up one old machine at a time while the provider has no capacity
	// for a new one (code ResourceExhausted), even if maxUnavailable is 0. Never more
	// than one of the replicas is unavailable for it, beyond what the bounds allow.
	// Without it the rollout goes on as far as the bounds allow, and waits for capacity.
	FreeCapacity bool
	// Discourage is how the Nodes of old sets are made less attractive to pods during a
	// rollout. Empty: [DiscouragePreferNoSchedule], as in the reference system.
	Discourage Discourage
	// HoldAutoscaler keeps the cluster autoscaler from removing the Nodes of the
	// deployment during a rollout, and while it is paused, by annotations. In the
	// reference system it is on unless a flag says otherwise.
	HoldAutoscaler bool
}

// Discourage is how Nodes of old sets are made less attractive.
type Discourage string

const (
	// DiscourageNone leaves the Nodes alone.
	DiscourageNone Discourage = "None"
	// DiscouragePreferNoSchedule taints them, so that pods go elsewhere if they can.
	DiscouragePreferNoSchedule Discourage = "PreferNoSchedule"
	// DiscourageNoSchedule taints them, so that new pods do not come. Pods stay pending
	// while the new machines are not ready. A cordon, which says the same, would also
	// take the Nodes away from load balancers, and is not on offer.
	DiscourageNoSchedule Discourage = "NoSchedule"
)

// A Gate decides whether a machine that was chosen may be replaced or updated now. If
// not, the hold says why: its Reason and Message are for people, and its Until is when
// to ask again, zero if a change will tell. Another machine may be chosen instead.
//
// A gate has to be a pure function of the choice, as it may be asked any number of
// times. It must not change what it is given.
type Gate func(Choice) (allowed bool, hold machinist.Hold)

// A Choice is what a [Gate] is asked about.
type Choice struct {
	// Deployment whose rollout it is, and the set that has the machine.
	Deployment *v1alpha1.MachineDeployment
	Set        *v1alpha1.MachineSet
	// Machine that was chosen.
	Machine *v1alpha1.Machine
	// Node of the machine; nil if it has none or is not known.
	Node *corev1.Node
	// InPlace says that the machine is to be updated, not replaced.
	InPlace bool
	// Now is the time of the decision.
	Now time.Time
}

// SelectedByLabel is the gate of the reference system's updates in place, for any
// strategy: it allows a machine whose Node is labelled as selected for an update, and
// keeps all others.
func SelectedByLabel(c Choice) (bool, machinist.Hold) {
	switch {
	case c.Node == nil:
		return false, machinist.Hold{Reason: "NodeUnknown", Message: "its Node is not known"}
	case c.Node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "true":
		return true, machinist.Hold{}
	default:
		return false, machinist.Hold{Reason: "NotSelected", Message: "its Node is not labelled " + v1alpha1.LabelKeyNodeSelectedForUpdate}
	}
}

const (
	// recheck is when to look again after a decision with actions, which may all get lost.
	recheck       = 30 * time.Second
	defaultUnseen = 30 * time.Second
	defaultBurst  = 100
)

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
