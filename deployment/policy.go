// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Policy is how to decide. The zero value is the cautious one.
type Policy struct {
	// Unseen is how long a write may be missing in the cache before the object is read from the API
	// server. Zero or less means 30s.
	Unseen time.Duration
	// Burst is the maximum number of Nodes and machines that one decision writes. The next decision
	// writes the others. Zero or less means 100, or a tenth of the machines if that is more.
	Burst int
	// Order is the order in which machines are deleted, after the named ones. Unavailable machines
	// are before others of the same rank in all criteria before the one with the name "Health". It
	// must be the order of the sets ([machineset.Policy.Order]), which use it too. Nil means the
	// default of the sets.
	Order machineset.Order
	// Gates report whether a machine may be replaced or updated now. All have to allow it. If one
	// does not, the reason, the message and the end of the hold say why and until when, and another
	// machine may be chosen. They are not asked about machines that are deleted because of a lower
	// number of replicas. Without gates each machine is allowed.
	//
	// A gate is called any number of times. It must be a pure function of the choice and must not
	// modify it.
	Gates []func(Choice) (allowed bool, hold machinist.Hold)
	// FreeCapacity deletes one old machine at a time while the provider has no capacity for a new
	// one (ResourceExhausted), even if maxUnavailable is 0. At most one machine more than the
	// bounds allow is unavailable for this. Without it the rollout waits for capacity once the
	// bounds allow nothing else.
	FreeCapacity bool
	// Discourage is the taint on the Nodes of old sets during a rollout. Empty means
	// [DiscouragePreferNoSchedule], as in MCM.
	Discourage Discourage
	// HoldAutoscaler disables scale-down by the cluster autoscaler for the Nodes of the deployment,
	// by annotations, during a rollout and while it is paused. MCM does so unless a flag disables
	// it. A Node that joins during the rollout gets them with the first write of the machine
	// controller, because an annotation of the new set and of its machines asks for that.
	HoldAutoscaler bool
}

// Discourage is a taint on the Nodes of old sets.
type Discourage string

const (
	// DiscourageNone sets no taint.
	DiscourageNone Discourage = "None"
	// DiscouragePreferNoSchedule lets the scheduler prefer other Nodes.
	DiscouragePreferNoSchedule Discourage = "PreferNoSchedule"
	// DiscourageNoSchedule keeps new pods away. Pods stay pending until new machines are ready. A
	// cordon would also remove the Nodes from load balancers.
	DiscourageNoSchedule Discourage = "NoSchedule"
)

// Choice is a machine to replace or to update, as one of [Policy.Gates] sees it.
type Choice struct {
	// Deployment is the deployment, and Set the set of the machine.
	Deployment *v1alpha1.MachineDeployment
	Set        *v1alpha1.MachineSet
	// Machine is the machine.
	Machine *v1alpha1.Machine
	// Node is the Node of the machine. Nil means that it does not exist or is not known.
	Node *corev1.Node
	// InPlace means that the machine is to be updated in place, not replaced.
	InPlace bool
	// Now is the time of the decision.
	Now time.Time
}

// SelectedByLabel is one of [Policy.Gates] for any strategy. It allows the machines whose Nodes have the label
// that selects them for an update, as MCM does for updates in place.
func SelectedByLabel(c Choice) (bool, machinist.Hold) {
	switch {
	case c.Node == nil:
		return false, machinist.Hold{Reason: reasonNodeUnknown, Message: "its Node is not known"}
	case c.Node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "true":
		return true, machinist.Hold{}
	default:
		return false, machinist.Hold{Reason: reasonNotSelected, Message: "its Node does not have the label " + v1alpha1.LabelKeyNodeSelectedForUpdate}
	}
}

const (
	// recheck is when to decide again after actions, because all of them may be lost.
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

// burst returns how many objects one decision about so many machines writes. Each decision counts all
// machines, so a large deployment writes more at a time.
func (p Policy) burst(machines int) int {
	if p.Burst <= 0 {
		return max(defaultBurst, machines/10)
	}
	return p.Burst
}

func (p Policy) order(now time.Time) machineset.Order {
	if p.Order == nil {
		return members.DeletionOrder(now)
	}
	return p.Order
}
