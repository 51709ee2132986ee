// SPDX-License-Identifier: Apache-2.0

package driver

import "context"

// A Driver makes, finds and deletes VMs on one kind of cloud. The package
// comment has the part of the contract that is common to all methods.
//
// A Driver is safe for use by multiple goroutines.
type Driver interface {
	// CreateMachine makes the VM of a machine.
	//
	// It is idempotent by the machine's name: if a VM with the mark of the
	// machine exists, made by an earlier call whose answer was lost, by another
	// process, or by a call that is still running, that VM is returned and no
	// second one is made. While another call for the same machine is running, and
	// while an earlier VM is being deleted, it may answer Aborted instead. If
	// several VMs exist, it adds none and answers OutOfRange.
	//
	// Cleaning up after a create that failed half-way is the driver's duty. It
	// either leaves nothing, or leaves only things that carry the marks, so that
	// CreateMachine for the same machine completes them, and DeleteMachine for it
	// removes them, even if there is no VM.
	//
	// Next to a nil error the response has a ProviderID and a NodeName. Next to
	// an error it may have a LastKnownState. ResourceExhausted means that a quota
	// or the capacity of a zone is used up. Uninitialized, NotFound and
	// Unimplemented make no sense here.
	CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error)

	// InitializeMachine finishes a VM that exists but is not usable yet: what
	// the cloud allows only after the VM was made, such as switching off a
	// source check or attaching a network.
	//
	// It is called after CreateMachine and whenever GetMachineStatus answers
	// Uninitialized, and is idempotent. NotFound means that there is no VM.
	// Unimplemented means that VMs of this cloud need no such step; the caller
	// takes that for success, and GetMachineStatus must then never answer
	// Uninitialized. Uninitialized means that it is not done yet; call again.
	//
	// Next to a nil error, and next to Uninitialized if known, the response has
	// the ProviderID, the NodeName and the addresses.
	InitializeMachine(ctx context.Context, req *InitializeMachineRequest) (*InitializeMachineResponse, error)

	// DeleteMachine removes the VM of a machine with all its side resources.
	//
	// If the ProviderID of the machine is set, that VM is removed, and what is
	// left over under the name of the machine without belonging to any VM; never
	// a second VM of that name, for the caller may be removing a duplicate. If it
	// is empty, because the answer of CreateMachine was lost, everything under
	// the name of the machine is removed, also if there are several VMs or none.
	//
	// OK means that nothing is left, or that the removal of all that is left has
	// been accepted and cannot fail any more; nobody asks again. If a side
	// resource can be removed only after the VM has gone, the answer until then
	// is an error that is worth repeating, such as Unavailable. NotFound means
	// that there was nothing, and is as good as OK: deleting twice is fine.
	//
	// Next to an error the response may have a LastKnownState. Unimplemented
	// makes no sense here.
	DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error)

	// GetMachineStatus finds the VM of a machine: by its ProviderID if that is
	// set, by the machine's name otherwise.
	//
	// NotFound means that there is no such VM, as far as the cloud shows. A VM
	// that is being deleted may count as absent. Side resources without a VM are
	// NotFound. Uninitialized means that InitializeMachine has to be called; the
	// response next to it has ProviderID and NodeName. OutOfRange means that
	// several VMs match. A VM that exists but is stopped or broken is found.
	//
	// Unimplemented is allowed for clouds without a way to look; the caller then
	// relies on CreateMachine being idempotent.
	GetMachineStatus(ctx context.Context, req *GetMachineStatusRequest) (*GetMachineStatusResponse, error)

	// ListMachines returns every VM in the scope of a class: at least all that
	// were made with that class, perhaps those of other classes of the same
	// scope, and none with the marks of another scope.
	//
	// It returns all of them or an error, never a part: whoever sees one page, or
	// one of two regions, returns an error. Machines are deleted because of what
	// is in this list and what is not. VMs that are being deleted are in it until
	// they are gone.
	ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error)

	// GetVolumeIDs translates volumes to the names under which the cloud attaches
	// them to a VM. Package drain does not call it: it waits for the
	// VolumeAttachments of a Node. The conformance kit does.
	//
	// A volume of another storage system is left out, without an error. The
	// result has the order of the request. It is computed from the request alone
	// as a rule; the volumes need not exist. Unimplemented means that volumes of
	// this cloud need no translation.
	GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error)
}
