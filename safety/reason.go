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
	//
	// What helps: it ends by itself at the time of the message.
	waitingForGrace machinist.Reason = "WaitingForGrace"
	// deletionProposed means that the deletion was proposed, and the VM is still listed.
	deletionProposed machinist.Reason = "DeletionProposed"
	// reportOnly means that the policy deletes nothing, or the driver cannot delete
	// side resources.
	//
	// What helps: delete it at the provider, or allow deletions in the policy.
	reportOnly machinist.Reason = "ReportOnly"
	// rateLimited means that [Policy.MaxDeletions] is reached.
	rateLimited machinist.Reason = "RateLimited"
	// unidentified means that the VM has no provider ID, no machine name, or several.
	//
	// What helps: delete the VM at the provider if it is not needed.
	unidentified machinist.Reason = "Unidentified"
	// inDoubt means that the VM may belong to the machine with its name. That machine is in
	// another namespace, has a similar provider ID, or has a VM that is not listed.
	//
	// What helps: correct the machine of the message, or delete the VM at the provider.
	inDoubt machinist.Reason = "InDoubt"
	// nodeWithoutVM means that a Node has no machine and no listed VM. Nothing is deleted.
	//
	// What helps: delete the Node by hand if its VM does not exist.
	nodeWithoutVM machinist.Reason = "NodeWithoutVM"
)

// Reasons to hold a whole class, or all classes.
const (
	// unsupported means that the driver cannot list VMs.
	//
	// What helps: the driver has to implement ListMachines.
	unsupported machinist.Reason = "Unsupported"
	// listingUnusable means that the listing is incomplete, older than 5 minutes, from the
	// future, or not the only one of its class.
	//
	// What helps: the driver has to list the VMs: see the Events of the class.
	listingUnusable machinist.Reason = "ListingUnusable"
	// machinesUnusable means that the list of machines is incomplete, older than 5 minutes,
	// from the future, older than the VMs, or of another namespace.
	machinesUnusable machinist.Reason = "MachinesUnusable"
	// suspicious means that one of the lists is probably wrong. Too many VMs or side resources
	// have no machine, no machine exists, or too many machines have no listed VM.
	//
	// What helps: wait for the time of the message, or delete the VMs at the provider.
	suspicious machinist.Reason = "Suspicious"
	// orphansHeld means that a class is held as suspicious. It is the reason of its Event.
	orphansHeld machinist.Reason = "OrphansHeld"
)

// Reasons to hold a Node without exactly one machine.
const (
	// nodeTooYoung means that [UnmanagedPolicy.Timeout] is not over.
	nodeTooYoung machinist.Reason = "NodeTooYoung"
	// nodeAmbiguous means that the Node matches several machines.
	//
	// What helps: delete the machine that does not belong to the Node.
	nodeAmbiguous machinist.Reason = "NodeAmbiguous"
	// markRemoved means that another client removed the mark.
	markRemoved machinist.Reason = "MarkRemoved"
	// nodeMarked means that the Node is marked and keeps its finalizer.
	//
	// What helps: create its machine, or delete the Node.
	nodeMarked machinist.Reason = "NodeMarked"
)

// Reasons of conditions and Events of an overshooting set.
const (
	// overshooting means that a set has too many machines.
	//
	// What helps: the set is unfrozen when machines are deleted.
	overshooting machinist.Reason = "OverShootingReplicaCount" // v1alpha1.OverShootingReplicaCount
	// follows means that a deployment is frozen because one of its sets is frozen.
	follows machinist.Reason = "MachineDeploymentStateSync" // v1alpha1.MachineDeploymentStateSync
	// eventSetFrozen means that a set was frozen.
	eventSetFrozen machinist.Reason = "FrozeMachineSet"
	// eventSetUnfrozen means that a set was unfrozen.
	eventSetUnfrozen machinist.Reason = "UnfrozeMachineSet"
	// eventDeploymentFrozen means that a deployment was frozen.
	eventDeploymentFrozen machinist.Reason = "FrozeMachineDeployment"
	// eventDeploymentUnfrozen means that a deployment was unfrozen.
	eventDeploymentUnfrozen machinist.Reason = "UnfrozeMachineDeployment"
)
