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
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// UpdateMachine writes metadata and spec of the machine, with the observed resource version as
// precondition.
type UpdateMachine struct {
	// Machine is the object to write.
	Machine *v1alpha1.Machine
	// What is the change, for people.
	What string
}

// UpdateStatus writes the status subresource of the machine.
type UpdateStatus struct {
	// Machine is the object to write. Only its status differs from the observed one.
	Machine *v1alpha1.Machine
}

// CallDriver calls the driver with [Call]. The caller passes the result to [VMView.After].
type CallDriver struct {
	// Operation is one of the following. OpGetMachineStatus looks for the VM by the name of the
	// machine. If the provider has no VM of that name, it calls ListMachines, and GetMachineStatus
	// with the provider ID. OpCreateMachine creates the VM; the intent was recorded in the status.
	// OpInitializeMachine initializes it. OpDeleteMachine deletes it, by the provider ID of the
	// machine or, if that is empty, by its name.
	Operation driver.Operation
	// Token is the bootstrap token of a VM to create. The zero token means none.
	Token BootstrapToken
	// LastKnownState is the last text of the driver for the status of the machine in the
	// request of an initialization. Empty keeps that of the machine. It is stored with the
	// result of the call or with the deletion, which saves a write. A crash before that loses it.
	LastKnownState string
	// ByName means that the request of a deletion has no provider ID, because the recorded one may
	// belong to the VM of another machine.
	ByName bool
}

// UpdateNode writes metadata and spec of the Node.
type UpdateNode struct {
	// Node is the object to write, with the observed resource version.
	Node *corev1.Node
	// What is the change, for people.
	What string
}

// UpdateNodeCapacity writes the capacity of the Node through the status subresource.
type UpdateNodeCapacity struct {
	// Node is the object to write. Only its metadata and capacity differ from the observed one.
	Node *corev1.Node
}

// SetNodeCondition adds a condition to the Node, or replaces the one of its type.
type SetNodeCondition struct {
	// NodeName is the Node.
	NodeName string
	// Condition is the condition to set.
	Condition corev1.NodeCondition
}

// DrainNode makes one pass of package drain, and sets [Observation.Drain] by [DrainView.After].
type DrainNode struct {
	// NodeName is the Node.
	NodeName string
	// Started is when the drain was first decided. It distinguishes drains of one Node.
	Started time.Time
	// Policy is that of the drain. EscalateFrom is when force begins, or zero.
	Policy drain.Policy
	// Reachability is whether the drain treats the Node as reachable.
	Reachability drain.NodeReachability
}

// DeleteAttachments deletes VolumeAttachments of a Node that cannot detach its volumes.
type DeleteAttachments struct {
	// Attachments are the objects to delete, sorted by name. Their UIDs are preconditions.
	Attachments []*storagev1.VolumeAttachment
}

// CreateToken creates the bootstrap token of the VM: see [NewBootstrapToken].
type CreateToken struct {
	// Expires is when the token expires.
	Expires time.Time
}

// DeleteToken deletes a bootstrap token.
type DeleteToken struct {
	// Namespace and Name are those of its Secret.
	Namespace, Name string
	// UID is the precondition of the deletion.
	UID types.UID
}

// TakePermit asks whether a machine may be failed because of a timeout, and sets
// [Observation.Permit]. A controller first asks its guard against correlated failures, and then
// takes a permit. With a permit taken, it has to read the siblings again.
type TakePermit struct {
	// Key is what is limited: the text of a [Group], or empty for none. Holder is the UID
	// of the machine.
	Key, Holder string
	// Within is how many permits may be taken at the same time, including this one. Zero takes
	// none: a creation timeout is not limited, nor is a machine without a group.
	Within int
	// Why is [ReasonHealthTimeout] or [ReasonCreationTimeout].
	Why machinist.Reason
	// VMGone means that the provider had a VM of the machine and does not find it anymore, so that
	// the replacement destroys nothing.
	VMGone bool
}

// ReturnPermit returns a permit.
type ReturnPermit struct {
	// Key and Holder are those of the permit.
	Key, Holder string
}

// UpdateClass writes the finalizers of a class.
type UpdateClass struct {
	// Class is the object to write, with the observed resource version.
	Class *v1alpha1.MachineClass
	// What is the change, for people.
	What string
}

// UpdateSecret writes the finalizers of a secret.
type UpdateSecret struct {
	// Secret is the object to write, with the observed resource version.
	Secret *corev1.Secret
	// What is the change, for people.
	What string
}

// String returns what is written.
func (a UpdateMachine) String() string { return "update machine: " + a.What }

// String returns the phase and the operation that are written.
func (a UpdateStatus) String() string {
	if a.Machine == nil {
		return "update status"
	}
	s := a.Machine.Status
	return fmt.Sprintf("record phase %q, %s %s", s.CurrentStatus.Phase, s.LastOperation.Type, s.LastOperation.State)
}

// String returns the call.
func (a CallDriver) String() string {
	switch {
	case a.ByName:
		return "delete the VM that has the name of the machine"
	case a.Operation == driver.OpGetMachineStatus:
		return "look for the VM"
	case a.Operation == driver.OpCreateMachine:
		return "create the VM"
	case a.Operation == driver.OpInitializeMachine:
		return "initialize the VM"
	default:
		return "delete the VM"
	}
}

// String returns what is written.
func (a UpdateNode) String() string { return "update node: " + a.What }

// String returns what is written.
func (a UpdateNodeCapacity) String() string { return "update node: virtual capacity" }

// String returns the condition.
func (a SetNodeCondition) String() string {
	return fmt.Sprintf("set condition %s=%s (%s) on node %s", a.Condition.Type, a.Condition.Status, a.Condition.Reason, a.NodeName)
}

// String returns the Node and when force begins.
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

// String returns the names of the attachments.
func (a DeleteAttachments) String() string {
	names := make([]string, len(a.Attachments))
	for i, va := range a.Attachments {
		names[i] = va.Name
	}
	return "delete volume attachments " + strings.Join(names, ", ")
}

// String returns when the token expires, and not the token.
func (a CreateToken) String() string {
	return "create a bootstrap token until " + a.Expires.UTC().Format(time.RFC3339)
}

// String returns the action without the name of the token.
func (DeleteToken) String() string { return "delete the bootstrap token" }

// String returns the holder, or the number of permits and their key.
func (a TakePermit) String() string {
	if a.Within == 0 {
		return fmt.Sprintf("ask whether machine %s may be failed: %s", a.Holder, a.Why)
	}
	return fmt.Sprintf("take one of %d permits of %s", a.Within, a.Key)
}

// String returns the key of the permit.
func (a ReturnPermit) String() string { return "return the permit of " + a.Key }

// String returns what is written.
func (a UpdateClass) String() string { return "update class: " + a.What }

// String returns what is written, without the data of the secret.
func (a UpdateSecret) String() string { return "update secret: " + a.What }
