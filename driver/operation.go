// SPDX-License-Identifier: Apache-2.0

package driver

// An Operation is the name of a method of [Driver].
type Operation string

// The operations, one for each method of [Driver].
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
)

// Operations returns all operations, in the order of the methods of [Driver].
func Operations() []Operation {
	return []Operation{
		OpCreateMachine, OpInitializeMachine, OpDeleteMachine,
		OpGetMachineStatus, OpListMachines, OpGetVolumeIDs,
	}
}

// String returns the name of the method.
func (o Operation) String() string { return string(o) }
