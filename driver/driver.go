// SPDX-License-Identifier: Apache-2.0

package driver

import "context"

// A Driver creates, finds and deletes VMs on one kind of cloud. The package comment has the
// rules for all methods. A Driver is safe for use by multiple goroutines.
type Driver interface {
	// CreateMachine creates the VM of a machine.
	//
	// It is idempotent by the name of the machine. If a VM of the machine exists, it returns
	// that VM and creates no second one. The VM may come from an earlier call, from another
	// process, or from a call that is still running. While such a call runs, or an earlier VM
	// is being deleted, it may return Aborted. If several VMs exist, it returns OutOfRange.
	//
	// A failed call leaves nothing, or only objects with the name of the machine. Then
	// CreateMachine completes them, and DeleteMachine deletes them, even without a VM.
	//
	// The response has a ProviderID and a NodeName. With an error it may have a
	// LastKnownState. ResourceExhausted means that quota or capacity is missing. Do not
	// return Uninitialized, NotFound or Unimplemented.
	CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error)

	// InitializeMachine completes a VM that exists and is not usable yet. It does what the
	// cloud allows only after the creation, such as attaching a network.
	//
	// It is called after CreateMachine, and when GetMachineStatus returns Uninitialized. It is
	// idempotent. NotFound means that the VM does not exist. Unimplemented means that VMs
	// need no such step, which is a success. Then GetMachineStatus never returns
	// Uninitialized. Uninitialized means that the step is not complete; call it again.
	//
	// The response has the ProviderID, the NodeName and the addresses, also with
	// Uninitialized if they are known.
	InitializeMachine(ctx context.Context, req *InitializeMachineRequest) (*InitializeMachineResponse, error)

	// DeleteMachine deletes the VM of a machine with all its side resources.
	//
	// With a ProviderID it deletes that VM, and the side resources with the name of the machine
	// that belong to no VM. It does not delete another VM of that name, because the caller may
	// be deleting a duplicate. Without a ProviderID it deletes everything with the name of the
	// machine, because the response of CreateMachine may have been lost.
	//
	// No error means that nothing is left, or that the cloud has accepted the deletion of all
	// that is left. The caller does not repeat it. If a side resource can be deleted only
	// after the VM, return Unavailable until then. NotFound means that nothing existed, which
	// is a success.
	//
	// With an error the response may have a LastKnownState. Do not return Unimplemented.
	DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error)

	// GetMachineStatus finds the VM of a machine by its ProviderID, or by the name of the
	// machine if the ProviderID is empty. It also finds a stopped or broken VM.
	//
	// NotFound means that the cloud shows no such VM. A VM that is being deleted may count as
	// absent. Side resources without a VM are NotFound. Uninitialized means that
	// InitializeMachine must be called; the response then has ProviderID and NodeName.
	// OutOfRange means that several VMs match. Unimplemented is allowed for a cloud without
	// such a request; the caller then uses CreateMachine.
	GetMachineStatus(ctx context.Context, req *GetMachineStatusRequest) (*GetMachineStatusResponse, error)

	// ListMachines returns every VM in the scope of a class. These are all VMs created with
	// that class, possibly VMs of other classes of the scope, and no VM of another scope.
	//
	// It returns all of them or an error, also if one page or region is missing. A VM that is
	// not in the list or has no machine may be created again or deleted. A VM that is being
	// deleted is in the list until it does not exist.
	ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error)

	// GetVolumeIDs returns the IDs of volumes at the cloud, in the order of the request. Package
	// drain does not call it: it waits for the VolumeAttachments of a Node.
	//
	// A volume of another storage system is skipped without an error. The volumes need not
	// exist. Unimplemented means that volumes need no translation.
	GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error)
}
