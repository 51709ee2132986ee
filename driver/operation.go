// SPDX-License-Identifier: Apache-2.0

package driver

// An Operation is the name of a method of [Driver], or of one of its optional interfaces.
type Operation string

// The operations, one for each method.
const (
	// OpCreateMachine is [Driver].CreateMachine.
	OpCreateMachine Operation = "CreateMachine"
	// OpInitializeMachine is [Driver].InitializeMachine.
	OpInitializeMachine Operation = "InitializeMachine"
	// OpDeleteMachine is [Driver].DeleteMachine.
	OpDeleteMachine Operation = "DeleteMachine"
	// OpGetMachineStatus is [Driver].GetMachineStatus.
	OpGetMachineStatus Operation = "GetMachineStatus"
	// OpListMachines is [Driver].ListMachines.
	OpListMachines Operation = "ListMachines"
	// OpGetVolumeIDs is [Driver].GetVolumeIDs.
	OpGetVolumeIDs Operation = "GetVolumeIDs"

	// OpListSideResources is [SideResourceLister].ListSideResources.
	OpListSideResources Operation = "ListSideResources"
	// OpDeleteSideResource is [SideResourceDeleter].DeleteSideResource.
	OpDeleteSideResource Operation = "DeleteSideResource"
)

// Operations returns the operations of [Driver], in the order of its methods.
func Operations() []Operation {
	return []Operation{
		OpCreateMachine, OpInitializeMachine, OpDeleteMachine,
		OpGetMachineStatus, OpListMachines, OpGetVolumeIDs,
	}
}

// String returns the name of the method.
func (o Operation) String() string { return string(o) }
