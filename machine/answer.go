// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/machinist-dev/machinist/driver"

// FromStatus returns the answer that a call of GetMachineStatus gave. A nil
// response names nothing.
func FromStatus(r *driver.GetMachineStatusResponse, err error) Answer {
	a := Answer{Operation: driver.OpGetMachineStatus, Err: err}
	if r != nil {
		a.ProviderID, a.NodeName, a.Addresses = r.ProviderID, r.NodeName, r.Addresses
	}
	return a
}

// FromCreate returns the answer that a call of CreateMachine gave. A nil
// response names nothing.
func FromCreate(r *driver.CreateMachineResponse, err error) Answer {
	a := Answer{Operation: driver.OpCreateMachine, Err: err}
	if r != nil {
		a.ProviderID, a.NodeName, a.Addresses, a.LastKnownState = r.ProviderID, r.NodeName, r.Addresses, r.LastKnownState
	}
	return a
}

// FromInitialize returns the answer that a call of InitializeMachine gave. A nil
// response names nothing.
func FromInitialize(r *driver.InitializeMachineResponse, err error) Answer {
	a := Answer{Operation: driver.OpInitializeMachine, Err: err}
	if r != nil {
		a.ProviderID, a.NodeName, a.Addresses = r.ProviderID, r.NodeName, r.Addresses
	}
	return a
}

// FromDelete returns the answer that a call of DeleteMachine gave. A nil
// response names nothing.
func FromDelete(r *driver.DeleteMachineResponse, err error) Answer {
	a := Answer{Operation: driver.OpDeleteMachine, Err: err}
	if r != nil {
		a.LastKnownState = r.LastKnownState
	}
	return a
}
