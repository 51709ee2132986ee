// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/machinist-dev/machinist/driver"

// fromStatus returns the answer that a call of GetMachineStatus gave. A nil
// response names nothing.
func fromStatus(r *driver.GetMachineStatusResponse, err error) Answer {
	a := Answer{Operation: driver.OpGetMachineStatus, Err: err}
	if r != nil {
		a.ProviderID, a.NodeName, a.Addresses = r.ProviderID, r.NodeName, r.Addresses
	}
	return a
}

// fromCreate returns the answer that a call of CreateMachine gave. A nil
// response names nothing.
func fromCreate(r *driver.CreateMachineResponse, err error) Answer {
	a := Answer{Operation: driver.OpCreateMachine, Err: err}
	if r != nil {
		a.ProviderID, a.NodeName, a.Addresses, a.LastKnownState = r.ProviderID, r.NodeName, r.Addresses, r.LastKnownState
	}
	return a
}

// fromInitialize returns the answer that a call of InitializeMachine gave. A nil
// response names nothing.
func fromInitialize(r *driver.InitializeMachineResponse, err error) Answer {
	a := Answer{Operation: driver.OpInitializeMachine, Err: err}
	if r != nil {
		a.ProviderID, a.NodeName, a.Addresses = r.ProviderID, r.NodeName, r.Addresses
	}
	return a
}

// fromDelete returns the answer that a call of DeleteMachine gave. A nil
// response names nothing.
func fromDelete(r *driver.DeleteMachineResponse, err error) Answer {
	a := Answer{Operation: driver.OpDeleteMachine, Err: err}
	if r != nil {
		a.LastKnownState = r.LastKnownState
	}
	return a
}
