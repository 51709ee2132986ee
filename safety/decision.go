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
	// NoMachine means that there is no machine of the VM's name.
	NoMachine machinist.Reason = "NoMachine"
	// SecondVM means that the machine of the VM's name has another VM, which is
	// there as well.
	SecondVM machinist.Reason = "SecondVM"
)

// Leftover is the reason to delete a side resource: neither a machine nor a listed VM
// has its name, or the provider ID of its VM.
const Leftover machinist.Reason = "Leftover"

// Reasons not to delete yet which are about one VM, side resource or Node.
const (
	// WaitingForGrace means that the VM has not been unowned for long enough.
	WaitingForGrace machinist.Reason = "WaitingForGrace"
	// DeletionProposed means that the deletion was proposed a while ago and the VM
	// is still listed.
	DeletionProposed machinist.Reason = "DeletionProposed"
	// ReportOnly means that the policy deletes nothing, or that the driver cannot delete
	// side resources.
	ReportOnly machinist.Reason = "ReportOnly"
	// RateLimited means that enough deletions were proposed for now.
	RateLimited machinist.Reason = "RateLimited"
	// Unidentified means that the VM has no provider ID, or not exactly one name of a
	// machine. A deletion without a provider ID would be of everything under the
	// machine's name.
	Unidentified machinist.Reason = "Unidentified"
	// InDoubt means that the VM may be that of a machine of its name, which is in another
	// namespace, has a similar provider ID, or has a VM that is not listed.
	InDoubt machinist.Reason = "InDoubt"
	// NodeWithoutVM means that a Node has neither a machine nor a listed VM. Nothing is
	// deleted.
	NodeWithoutVM machinist.Reason = "NodeWithoutVM"
)

// Reasons not to delete which are about a whole class, or about all.
const (
	// Unsupported means that the driver cannot list VMs.
	Unsupported machinist.Reason = "Unsupported"
	// ListingUnusable means that the listing is not complete, too old, from the future,
	// or one of several of its class.
	ListingUnusable machinist.Reason = "ListingUnusable"
	// MachinesUnusable means that the machines were not all read, too long ago, in the
	// future, before the VMs, or not in the class's namespace.
	MachinesUnusable machinist.Reason = "MachinesUnusable"
	// Suspicious means that so many VMs or side resources are unowned, or that there is no
	// machine at all, that the machines are doubted; or that so many machines have no VM in
	// the listing that it is doubted.
	Suspicious machinist.Reason = "Suspicious"
)

// Action is something to do. It is one of [DeleteVM] and [DeleteSideResource].
type Action interface {
	fmt.Stringer
	isAction()
}

// DeleteVM deletes a VM that nobody owns, and what belongs to it. To repeat it is
// harmless; if it is lost or fails, it is proposed again.
type DeleteVM struct {
	// ProviderID of the VM, as listed. It is never empty.
	ProviderID string
	// MachineName is the name that the VM carries. It is never empty.
	MachineName string
	// Namespace and Class are those of the class that listed it.
	Namespace, Class string
	// Reason is [NoMachine] or [SecondVM].
	Reason machinist.Reason
	// OwnerUID and OwnerProviderID are, for SecondVM, those of the machine whose
	// VM is another one.
	OwnerUID        types.UID
	OwnerProviderID string
	// Message is what the proposal rests on, for people: the times of the first and the
	// last listing, how much of the class is unowned, how many machines were read, and how
	// many deletions were proposed lately. Its text may change.
	Message string
}

func (DeleteVM) isAction() {}

// String returns the action in one line.
func (a DeleteVM) String() string {
	return fmt.Sprintf("delete VM %s of machine %s/%s: %s: %s", a.ProviderID, a.Namespace, a.MachineName, a.Reason, a.Message)
}

// Machine returns the machine to call the driver's DeleteMachine with: it has
// nothing but name, namespace and provider ID. The caller owns it.
func (a DeleteVM) Machine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.MachineName},
		Spec:       v1alpha1.MachineSpec{ProviderID: a.ProviderID},
	}
}

// OwnsNode reports whether a Node is that of the deleted VM and may be deleted with it:
// the Node has the provider ID of the VM, and its label names no other machine. A nil
// Node, and one without provider ID, is not.
func (a DeleteVM) OwnsNode(node *corev1.Node) bool {
	if node == nil || node.Spec.ProviderID == "" ||
		nodeops.NormalizeProviderID(node.Spec.ProviderID) != nodeops.NormalizeProviderID(a.ProviderID) {
		return false
	}
	name := node.Labels[v1alpha1.MachineNameLabelKey]
	return name == "" || name == a.MachineName
}

// StillValid says whether the deletion may go ahead, given the machine of that
// name as it was just read from the API server, or nil if there is none. Any
// news about the machine stops the deletion, also news that would be another
// reason to delete: the next [Step] will see.
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

// DeleteSideResource deletes a side resource that no machine and no VM has. To repeat it
// is harmless; if it is lost or fails, it is proposed again.
type DeleteSideResource struct {
	// Resource as listed. Its kind, ID and machine name are never empty.
	Resource driver.SideResource
	// Namespace and Class are those of the class that listed it.
	Namespace, Class string
	// Reason is [Leftover].
	Reason machinist.Reason
	// Message is what the proposal rests on, as in [DeleteVM].
	Message string
}

func (DeleteSideResource) isAction() {}

// String returns the action in one line.
func (a DeleteSideResource) String() string {
	return fmt.Sprintf("delete %s %s of machine %s/%s: %s: %s", a.Resource.Kind, a.Resource.ID, a.Namespace, a.Resource.MachineName, a.Reason, a.Message)
}

// StillValid says whether the deletion may go ahead, given the machine of that name as it
// was just read from the API server, or nil if there is none.
func (a DeleteSideResource) StillValid(live *v1alpha1.Machine) bool {
	return a.Reason == Leftover && live == nil
}

// Decision is what to do now, what is not done, and when to look again.
type Decision struct {
	// Actions, each right without the others. Those never proposed before come
	// first, and of them those that were found first.
	Actions []Action
	// Holds sorted by subject.
	Holds []machinist.Hold
	// NextCheck is when to list again. Zero means that there is nothing to list.
	// It is never zero next to an action, and never before now.
	NextCheck time.Time
}

// String returns the decision in one line.
func (d Decision) String() string { return line.Decision(d.Actions, "", "", d.Holds) }
