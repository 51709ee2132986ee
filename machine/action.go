// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Action is one effect. The set is closed: a caller that meets an action it does
// not know has to stop with an error.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	isAction()
}

// UpdateMachine writes the metadata and spec of the machine. The object carries
// the resource version that was observed, so that a write based on old news
// fails.
type UpdateMachine struct {
	// Machine to write.
	Machine *v1alpha1.Machine
	// What is said of the change, for people.
	What string
}

// UpdateStatus writes the status of the machine, through the status
// subresource.
type UpdateStatus struct {
	// Machine to write; only its status differs from the one observed.
	Machine *v1alpha1.Machine
}

// LookForVM calls GetMachineStatus.
type LookForVM struct{}

// LookForNode reads the Node from the API server, and not from a cache, and fills
// [Observation.Node]: the Node and NodeView.AsOf, or NodeView.Unanswered.
type LookForNode struct {
	// NodeName is the Node. If it is empty, the Node is looked for by the provider ID
	// of the machine.
	NodeName string
}

// CreateVM calls CreateMachine. That it is about to happen is written down
// before it is ever decided.
type CreateVM struct {
	// Token with which the VM joins, for [renderUserData]. The zero token is none.
	Token BootstrapToken
}

// InitializeVM calls InitializeMachine.
type InitializeVM struct {
	// LastKnownState is the driver's text from its last answer, which the machine
	// in the request has to carry in its status; empty keeps what is there. It is
	// written down with what becomes of the call, or with the deletion, whichever
	// comes first, to save a write in every life. A crash before loses it, as one
	// just after the driver's answer always did.
	LastKnownState string
}

// DeleteVM calls DeleteMachine, which finds the VM by the machine's provider ID
// or, if that is empty, by its name.
type DeleteVM struct {
	// ByName says that the provider ID in the request is empty: the one that is
	// recorded is that of another machine's VM.
	ByName bool
}

// UpdateNode writes the metadata and spec of the Node.
type UpdateNode struct {
	// Node to write, with the resource version that was observed.
	Node *corev1.Node
	// What is said of the change, for people.
	What string
}

// UpdateNodeCapacity writes the capacity of the Node, through the status
// subresource.
type UpdateNodeCapacity struct {
	// Node to write; only its metadata and capacity differ.
	Node *corev1.Node
}

// SetNodeCondition adds a condition to the Node, or replaces the one of the same
// type.
type SetNodeCondition struct {
	// NodeName is the Node.
	NodeName string
	// Condition to set.
	Condition corev1.NodeCondition
}

// DrainNode makes one pass of package drain, and fills [Observation.Drain] by
// [DrainView.After].
type DrainNode struct {
	// NodeName is the Node.
	NodeName string
	// Started is when the drain was first wanted, which tells it from another one.
	Started time.Time
	// Policy is how. EscalateFrom is the time of force, or zero.
	Policy drain.Policy
	// Reachability is what the drain is to believe of the Node.
	Reachability drain.NodeReachability
}

// DeleteAttachments deletes VolumeAttachments of a Node that will not detach its volumes
// any more.
type DeleteAttachments struct {
	// Attachments to delete, by name. The UID of each guards against a later object of
	// the same name.
	Attachments []*storagev1.VolumeAttachment
}

// CreateToken makes the bootstrap token with which the VM of the machine joins;
// see [NewBootstrapToken].
type CreateToken struct {
	// Expires is when the token ends.
	Expires time.Time
}

// DeleteToken deletes a bootstrap token.
type DeleteToken struct {
	// Namespace and Name of its Secret.
	Namespace, Name string
	// UID guards against a later Secret of the same name.
	UID types.UID
}

// TakePermit asks for the right to fail a machine, and fills [Observation.Permit]. It is
// the one question before a machine is failed because of a timeout: a controller asks its
// guard against correlated failures, and then takes a permit. With a permit taken, the
// siblings have to be looked at anew.
type TakePermit struct {
	// Key is what is limited: the text of a [Group], empty for none. Holder is the UID
	// of the machine.
	Key, Holder string
	// Within is how many permits there may be at a time, this one included. Zero takes
	// no permit: a creation timeout is not limited, and a machine without a group.
	Within int
	// Why is [ReasonHealthTimeout] or [ReasonCreationTimeout].
	Why machinist.Reason
	// VMGone says that the provider had a VM of the machine and does not find it any
	// more, so that nothing is destroyed.
	VMGone bool
}

// ReturnPermit gives the right back.
type ReturnPermit struct {
	// Key and Holder of the permit.
	Key, Holder string
}

// DeleteNode takes our finalizer off the Node with [ReleaseNode] and deletes it.
type DeleteNode struct {
	// Node to delete, as observed. Its UID guards against a later Node of the same name.
	Node *corev1.Node
}

// DeleteMachine deletes the machine, because somebody deletes its Node.
type DeleteMachine struct {
	// Namespace and Name of the machine.
	Namespace, Name string
	// UID guards against a later machine of the same name.
	UID types.UID
}

// UpdateClass writes the finalizers of a class.
type UpdateClass struct {
	// Class to write, with the resource version that was observed.
	Class *v1alpha1.MachineClass
	// What is said of the change, for people.
	What string
}

// UpdateSecret writes the finalizers of a secret.
type UpdateSecret struct {
	// Secret to write, with the resource version that was observed.
	Secret *corev1.Secret
	// What is said of the change, for people.
	What string
}

func (UpdateMachine) isAction()      {}
func (UpdateStatus) isAction()       {}
func (LookForVM) isAction()          {}
func (LookForNode) isAction()        {}
func (CreateVM) isAction()           {}
func (InitializeVM) isAction()       {}
func (DeleteVM) isAction()           {}
func (UpdateNode) isAction()         {}
func (UpdateNodeCapacity) isAction() {}
func (SetNodeCondition) isAction()   {}
func (DrainNode) isAction()          {}
func (DeleteAttachments) isAction()  {}
func (CreateToken) isAction()        {}
func (DeleteToken) isAction()        {}
func (TakePermit) isAction()         {}
func (ReturnPermit) isAction()       {}
func (DeleteNode) isAction()         {}
func (DeleteMachine) isAction()      {}
func (UpdateClass) isAction()        {}
func (UpdateSecret) isAction()       {}

// String says what is written.
func (a UpdateMachine) String() string { return "update machine: " + a.What }

// String says which phase and operation are written.
func (a UpdateStatus) String() string {
	if a.Machine == nil {
		return "update status"
	}
	s := a.Machine.Status
	return fmt.Sprintf("record phase %q, %s %s", s.CurrentStatus.Phase, s.LastOperation.Type, s.LastOperation.State)
}

// String names the call.
func (LookForVM) String() string { return "look for the VM" }

// String names the Node, if its name is known.
func (a LookForNode) String() string {
	if a.NodeName == "" {
		return "read the node with the provider ID from the API server"
	}
	return "read node " + a.NodeName + " from the API server"
}

// String names the call.
func (CreateVM) String() string { return "create the VM" }

// String names the call.
func (InitializeVM) String() string { return "initialise the VM" }

// String names the call.
func (a DeleteVM) String() string {
	if a.ByName {
		return "delete the VM that has the name of the machine"
	}
	return "delete the VM"
}

// String says what is written.
func (a UpdateNode) String() string { return "update node: " + a.What }

// String says what is written.
func (a UpdateNodeCapacity) String() string { return "update node: virtual capacity" }

// String names the condition.
func (a SetNodeCondition) String() string {
	return fmt.Sprintf("set condition %s=%s (%s) on node %s", a.Condition.Type, a.Condition.Status, a.Condition.Reason, a.NodeName)
}

// String names the Node and the mode.
func (a DrainNode) String() string {
	switch {
	case a.unreachable():
		return fmt.Sprintf("drain node %s, which is unreachable", a.NodeName)
	case a.forceAt().IsZero():
		return fmt.Sprintf("drain node %s", a.NodeName)
	default:
		return fmt.Sprintf("drain node %s, by force from %s", a.NodeName, a.forceAt().UTC().Format(time.RFC3339))
	}
}

// String names the attachments.
func (a DeleteAttachments) String() string {
	names := make([]string, len(a.Attachments))
	for i, va := range a.Attachments {
		names[i] = va.Name
	}
	return "delete volume attachments " + strings.Join(names, ", ")
}

// String says until when; never the token.
func (a CreateToken) String() string {
	return "create a bootstrap token until " + a.Expires.UTC().Format(time.RFC3339)
}

// String says that one is deleted; never which.
func (DeleteToken) String() string { return "delete the bootstrap token" }

// String says of whom.
func (a TakePermit) String() string {
	if a.Within == 0 {
		return fmt.Sprintf("ask whether machine %s may be failed: %s", a.Holder, a.Why)
	}
	return fmt.Sprintf("take one of %d permits of %s", a.Within, a.Key)
}

// String says of whom.
func (a ReturnPermit) String() string { return "return the permit of " + a.Key }

// String names the Node.
func (a DeleteNode) String() string {
	if a.Node == nil {
		return "delete node"
	}
	return "delete node " + a.Node.Name
}

// String names the machine.
func (a DeleteMachine) String() string { return "delete machine " + a.Name }

// String says what is written.
func (a UpdateClass) String() string { return "update class: " + a.What }

// String says what is written; never the data of the secret.
func (a UpdateSecret) String() string { return "update secret: " + a.What }
