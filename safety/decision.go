// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"encoding/json"
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
	// Reason is "NoMachine", or "SecondVM" if the machine with its name has another VM.
	Reason machinist.Reason `json:"reason"`
	// OwnerUID and OwnerProviderID identify the machine with another VM, for "SecondVM".
	OwnerUID        types.UID `json:"ownerUID,omitempty"`
	OwnerProviderID string    `json:"ownerProviderID,omitempty"`
	// Message names the evidence: the times of the listings, the share of VMs without a
	// machine, and the number of machines and deletions. Its text may change.
	Message string `json:"message"`
}

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
	case noMachine:
		return live == nil
	case secondVM:
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
	// Reason is "Leftover".
	Reason machinist.Reason `json:"reason"`
	// Message names the evidence, as in [DeleteVM].
	Message string `json:"message"`
}

// String returns the action in one line.
func (a DeleteSideResource) String() string {
	return fmt.Sprintf("delete %s of machine/%s/%s: %s: %s", sideSubject(a.Resource), a.Namespace, a.Resource.MachineName, a.Reason, a.Message)
}

// StillValid reports whether the side resource may be deleted now. live is the machine with
// its machine name, just read from the API server, or nil if it does not exist.
func (a DeleteSideResource) StillValid(live *v1alpha1.Machine) bool {
	return a.Reason == leftover && live == nil
}

// Decision is the result of [Step], [StepOvershoot], [StepUnmanaged] and [DecideGuard]. Each
// documents its actions of type A. A zero field says nothing.
type Decision[A machinist.Action] struct {
	// Actions are carried out in their order. The next decision repeats failed ones.
	Actions []A `json:"actions,omitempty"`
	// Reason and Message are why, for a decision about one object. The text of Message may
	// change.
	Reason  machinist.Reason `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
	// Holds are what is not done, and why, sorted by subject or name.
	Holds []machinist.Hold `json:"holds,omitempty"`
	// Events have subjects, and are sorted by them.
	Events []machinist.Event `json:"events,omitempty"`
	// NextCheck is when to decide again. Zero means when an object changes.
	NextCheck time.Time `json:"nextCheck,omitzero"`
}

// String returns the decision in one line.
func (d Decision[A]) String() string { return line.Decision(d.Actions, d.Reason, d.Message, d.Holds) }

// MarshalJSON returns the decision as JSON. An update has a type, the subject that it writes, and its
// text for people. It does not contain the object.
func (d Decision[A]) MarshalJSON() ([]byte, error) {
	type fields Decision[A]
	out := struct {
		fields
		Actions []any `json:"actions,omitempty"`
	}{fields: fields(d)}
	for _, a := range d.Actions {
		if u, ok := any(a).(machinist.Update); ok {
			out.Actions = append(out.Actions, map[string]string{"type": "Update", "subject": updated(u), "text": u.String()})
		} else {
			out.Actions = append(out.Actions, a)
		}
	}
	return json.Marshal(out)
}

// updated returns the subject that an update writes.
func updated(u machinist.Update) string {
	switch o := u.Object.(type) {
	case *v1alpha1.MachineSet:
		return setSubject(o)
	case *v1alpha1.MachineDeployment:
		return deploymentSubject(o)
	case *corev1.Node:
		return subject("node", o)
	}
	return ""
}
