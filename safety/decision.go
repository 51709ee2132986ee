// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// Reasons to delete a VM.
const (
	// NoMachine means that no machine has the name of the VM.
	NoMachine machinist.Reason = "NoMachine"
	// SecondVM means that the machine with the name of the VM has another VM, which is
	// listed too.
	SecondVM machinist.Reason = "SecondVM"
)

// Leftover is the reason to delete a side resource. No machine and no listed VM has its
// machine name or its provider ID.
const Leftover machinist.Reason = "Leftover"

// Reasons to hold one VM, side resource or Node.
const (
	// WaitingForGrace means that [Policy.Grace] is not over.
	WaitingForGrace machinist.Reason = "WaitingForGrace"
	// DeletionProposed means that the deletion was proposed, and the VM is still listed.
	DeletionProposed machinist.Reason = "DeletionProposed"
	// ReportOnly means that the policy deletes nothing, or that the driver cannot delete
	// side resources.
	ReportOnly machinist.Reason = "ReportOnly"
	// RateLimited means that [Policy.MaxDeletions] is reached.
	RateLimited machinist.Reason = "RateLimited"
	// Unidentified means that the VM has no provider ID, no machine name, or several.
	Unidentified machinist.Reason = "Unidentified"
	// InDoubt means that the VM may belong to the machine with its name. That machine is in
	// another namespace, has a similar provider ID, or has a VM that is not listed.
	InDoubt machinist.Reason = "InDoubt"
	// NodeWithoutVM means that a Node has no machine and no listed VM. Nothing is deleted.
	NodeWithoutVM machinist.Reason = "NodeWithoutVM"
)

// Reasons to hold a whole class, or all classes.
const (
	// Unsupported means that the driver cannot list VMs.
	Unsupported machinist.Reason = "Unsupported"
	// ListingUnusable means that the listing is incomplete, older than 5 minutes, from the
	// future, or not the only one of its class.
	ListingUnusable machinist.Reason = "ListingUnusable"
	// MachinesUnusable means that the list of machines is incomplete, older than 5 minutes,
	// from the future, older than the VMs, or of another namespace.
	MachinesUnusable machinist.Reason = "MachinesUnusable"
	// Suspicious means that one of the lists is probably wrong. Too many VMs or side resources
	// have no machine, no machine exists, or too many machines have no listed VM.
	Suspicious machinist.Reason = "Suspicious"
)

// Action is one effect of a decision: [DeleteVM] or [DeleteSideResource].
type Action interface {
	fmt.Stringer
	isAction()
}

// DeleteVM deletes a VM without a machine, and its side resources. It is safe to repeat. A
// deletion that failed is proposed again after [Policy.Grace].
type DeleteVM struct {
	// ProviderID of the VM, as listed. It is never empty.
	ProviderID string `json:"providerID"`
	// MachineName is the machine name in the listing. It is never empty.
	MachineName string `json:"machineName"`
	// Namespace and Class name the MachineClass of the listing.
	Namespace string `json:"namespace"`
	Class     string `json:"class"`
	// Reason is [NoMachine] or [SecondVM].
	Reason machinist.Reason `json:"reason"`
	// OwnerUID and OwnerProviderID identify the machine with another VM, for SecondVM.
	OwnerUID        types.UID `json:"ownerUID,omitempty"`
	OwnerProviderID string    `json:"ownerProviderID,omitempty"`
	// Message names the evidence: the times of the listings, the share of VMs without a
	// machine, and the number of machines and deletions. Its text may change.
	Message string `json:"message"`
}

func (DeleteVM) isAction() {}

// String returns the action in one line.
func (a DeleteVM) String() string {
	return fmt.Sprintf("delete vm/%s of machine/%s/%s: %s: %s", a.ProviderID, a.Namespace, a.MachineName, a.Reason, a.Message)
}

// Machine returns the machine for a DeleteMachineRequest. It has a name, a namespace and a
// provider ID only. The caller owns it.
func (a DeleteVM) Machine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.MachineName},
		Spec:       v1alpha1.MachineSpec{ProviderID: a.ProviderID},
	}
}

// OwnsNode reports whether a Node belongs to the VM and may be deleted with it. It has the
// provider ID of the VM, and its label names no other machine. It is false for nil.
func (a DeleteVM) OwnsNode(node *corev1.Node) bool {
	if node == nil || node.Spec.ProviderID == "" ||
		nodeops.NormalizeProviderID(node.Spec.ProviderID) != nodeops.NormalizeProviderID(a.ProviderID) {
		return false
	}
	name := node.Labels[v1alpha1.MachineNameLabelKey]
	return name == "" || name == a.MachineName
}

// StillValid reports whether the VM may be deleted now. live is the machine with its name,
// just read from the API server, or nil if it does not exist. Any change of the machine
// makes the deletion invalid, and the next [Step] decides again.
func (a DeleteVM) StillValid(live *v1alpha1.Machine) bool {
	switch a.Reason {
	case NoMachine:
		return live == nil
	case SecondVM:
		return live != nil && live.UID == a.OwnerUID && live.Spec.ProviderID == a.OwnerProviderID &&
			nodeops.NormalizeProviderID(live.Spec.ProviderID) != "" &&
			!nodeops.SameInstance(live.Spec.ProviderID, a.ProviderID)
	default:
		return false
	}
}

// DeleteSideResource deletes a side resource without a machine and without a VM. It is safe
// to repeat. A deletion that failed is proposed again after [Policy.Grace].
type DeleteSideResource struct {
	// Resource as listed. Its kind, ID and machine name are never empty.
	Resource driver.SideResource `json:"resource"`
	// Namespace and Class name the MachineClass of the listing.
	Namespace string `json:"namespace"`
	Class     string `json:"class"`
	// Reason is [Leftover].
	Reason machinist.Reason `json:"reason"`
	// Message names the evidence, as in [DeleteVM].
	Message string `json:"message"`
}

func (DeleteSideResource) isAction() {}

// String returns the action in one line.
func (a DeleteSideResource) String() string {
	return fmt.Sprintf("delete %s of machine/%s/%s: %s: %s", sideSubject(a.Resource), a.Namespace, a.Resource.MachineName, a.Reason, a.Message)
}

// StillValid reports whether the side resource may be deleted now. live is the machine with
// its machine name, just read from the API server, or nil if it does not exist.
func (a DeleteSideResource) StillValid(live *v1alpha1.Machine) bool {
	return a.Reason == Leftover && live == nil
}

// ClassEvent is an Event to report on a class.
type ClassEvent struct {
	// Namespace and Class name the MachineClass.
	Namespace string `json:"namespace"`
	Class     string `json:"class"`
	machinist.Event
}

// orphansHeld is the reason of the Event of a class that is held because of a [Suspicious] list.
const orphansHeld machinist.Reason = "OrphansHeld"

// Decision is the result of [Step].
type Decision struct {
	// Actions are independent of each other. New deletions come first, ordered by the time of
	// the first listing.
	Actions []Action `json:"actions,omitempty"`
	// Holds are sorted by subject.
	Holds []machinist.Hold `json:"holds,omitempty"`
	// Events are sorted by class.
	Events []ClassEvent `json:"events,omitempty"`
	// NextCheck is when to list again, never before now. Zero means that nothing can be
	// listed.
	NextCheck time.Time `json:"nextCheck,omitzero"`
}

// String returns the decision in one line.
func (d Decision) String() string { return line.Decision(d.Actions, "", "", d.Holds) }
