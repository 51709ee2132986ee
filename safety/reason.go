// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"github.com/machinist-dev/machinist"
)

// Reasons to delete a VM or a side resource.
const (
	// noMachine means that no machine has the name of the VM.
	noMachine machinist.Reason = "NoMachine"
	// secondVM means that the machine with the name of the VM has another VM, which is
	// listed too.
	secondVM machinist.Reason = "SecondVM"
	// leftover means that no machine and no listed VM has the machine name or the provider ID
	// of a side resource.
	leftover machinist.Reason = "Leftover"
)

// Reasons to hold one VM, side resource or Node.
const (
	// waitingForGrace means that [Policy.Grace] is not over.
	waitingForGrace machinist.Reason = "WaitingForGrace"
	// deletionProposed means that the deletion was proposed, and the VM is still listed.
	deletionProposed machinist.Reason = "DeletionProposed"
	// reportOnly means that the policy deletes nothing, or that the driver cannot delete
	// side resources.
	reportOnly machinist.Reason = "ReportOnly"
	// rateLimited means that [Policy.MaxDeletions] is reached.
	rateLimited machinist.Reason = "RateLimited"
	// unidentified means that the VM has no provider ID, no machine name, or several.
	unidentified machinist.Reason = "Unidentified"
	// inDoubt means that the VM may belong to the machine with its name. That machine is in
	// another namespace, has a similar provider ID, or has a VM that is not listed.
	inDoubt machinist.Reason = "InDoubt"
	// nodeWithoutVM means that a Node has no machine and no listed VM. Nothing is deleted.
	nodeWithoutVM machinist.Reason = "NodeWithoutVM"
)

// Reasons to hold a whole class, or all classes.
const (
	// unsupported means that the driver cannot list VMs.
	unsupported machinist.Reason = "Unsupported"
	// listingUnusable means that the listing is incomplete, older than 5 minutes, from the
	// future, or not the only one of its class.
	listingUnusable machinist.Reason = "ListingUnusable"
	// machinesUnusable means that the list of machines is incomplete, older than 5 minutes,
	// from the future, older than the VMs, or of another namespace.
	machinesUnusable machinist.Reason = "MachinesUnusable"
	// suspicious means that one of the lists is probably wrong. Too many VMs or side resources
	// have no machine, no machine exists, or too many machines have no listed VM.
	suspicious machinist.Reason = "Suspicious"
	// orphansHeld is the reason of the Event of a class that is held as suspicious.
	orphansHeld machinist.Reason = "OrphansHeld"
)

// Reasons to hold a Node without exactly one machine.
const (
	// nodeTooYoung means that [UnmanagedPolicy.Timeout] is not over.
	nodeTooYoung machinist.Reason = "NodeTooYoung"
	// nodeAmbiguous means that the Node matches several machines.
	nodeAmbiguous machinist.Reason = "NodeAmbiguous"
	// markRemoved means that another client removed the mark.
	markRemoved machinist.Reason = "MarkRemoved"
	// nodeMarked means that the Node is marked and keeps its finalizer.
	nodeMarked machinist.Reason = "NodeMarked"
)
