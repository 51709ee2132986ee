// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
)

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

// TakePermit asks whether a machine may be failed because of a timeout, and sets
// [Observation.Permit]. A controller first asks its guard against correlated failures, and then
// takes a permit. With a permit taken, it has to read the siblings again.
type TakePermit struct {
	// Key is what is limited: a text for the [Siblings] of the machine, or empty for none. Holder is the UID
	// of the machine.
	Key, Holder string
	// Within is how many permits may be taken at the same time, including this one. Zero takes
	// none: a creation timeout is not limited, nor is a machine without a group.
	Within int
	// Why is "HealthTimeout" or "CreationTimeout".
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

// String returns the holder, or the number of permits and their key.
func (a TakePermit) String() string {
	if a.Within == 0 {
		return fmt.Sprintf("ask whether machine %s may be failed: %s", a.Holder, a.Why)
	}
	return fmt.Sprintf("take one of %d permits of %s", a.Within, a.Key)
}

// String returns the key of the permit.
func (a ReturnPermit) String() string { return "return the permit of " + a.Key }
