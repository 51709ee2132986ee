// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// VMs are the names of machines by provider ID.
type VMs map[string]string

// GenerateMachineClassForMigrationRequest is the request to convert a class. Drivers may have the
// method, which no program calls anymore.
type GenerateMachineClassForMigrationRequest struct {
	// ProviderSpecificMachineClass is the class to convert.
	ProviderSpecificMachineClass any
	// MachineClass is the result.
	MachineClass *v1alpha1.MachineClass
	// ClassSpec has the kind of the class to convert.
	ClassSpec *v1alpha1.ClassSpec
}

// GenerateMachineClassForMigrationResponse is empty. The result is in the request.
type GenerateMachineClassForMigrationResponse struct{}

// FakeDriver is a driver for tests with fixed responses. Each call fails with Err, if it is not nil.
// It is not safe for concurrent use. New tests use package drivertest of this project.
type FakeDriver struct {
	// VMExists is set by CreateMachine and InitializeMachine, and cleared by DeleteMachine.
	VMExists bool
	// ProviderID, NodeName, LastKnownState and Addresses are parts of the responses.
	ProviderID, NodeName, LastKnownState string
	Addresses                            []corev1.NodeAddress
	// Err is the error of all calls.
	Err error

	fakeVMs VMs
}

// noVM is the error of GetMachineStatus without a VM.
var noVM = map[bool]error{false: status.Error(codes.NotFound, "the fake driver has no VM")}

// NewFakeDriver returns a [FakeDriver]. ListMachines returns fakeVMs, which may be nil.
func NewFakeDriver(vmExists bool, providerID, nodeName, lastKnownState string, addresses []corev1.NodeAddress, err error, fakeVMs VMs) driver.Driver {
	return &FakeDriver{vmExists, providerID, nodeName, lastKnownState, addresses, err, fakeVMs}
}

// orError returns response without an error, and nil with one.
func orError[T any](response *T, err error) (*T, error) {
	return map[bool]*T{true: response}[err == nil], err
}

// unlessUnimplemented returns err, and nil if its code is Unimplemented.
func unlessUnimplemented(err error) error {
	return map[bool]error{true: err}[codes.Of(err) != codes.Unimplemented]
}

// CreateMachine implements [driver.Driver].
func (d *FakeDriver) CreateMachine(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.VMExists = d.VMExists || d.Err == nil
	return orError(&driver.CreateMachineResponse{ProviderID: d.ProviderID, NodeName: d.NodeName, LastKnownState: d.LastKnownState, Addresses: d.Addresses}, d.Err)
}

// InitializeMachine implements [driver.Driver]. It succeeds if the code of Err is Unimplemented.
func (d *FakeDriver) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	err := unlessUnimplemented(d.Err)
	d.VMExists = err == nil || d.VMExists && codes.Of(err) != codes.NotFound
	return orError(&driver.InitializeMachineResponse{ProviderID: d.ProviderID, NodeName: d.NodeName, Addresses: d.Addresses}, err)
}

// DeleteMachine implements [driver.Driver].
func (d *FakeDriver) DeleteMachine(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.VMExists = false
	return &driver.DeleteMachineResponse{LastKnownState: d.LastKnownState}, d.Err
}

// GetMachineStatus implements [driver.Driver]. Its code is NotFound without a VM.
func (d *FakeDriver) GetMachineStatus(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return orError(&driver.GetMachineStatusResponse{ProviderID: d.ProviderID, NodeName: d.NodeName, Addresses: d.Addresses}, cmp.Or(noVM[d.VMExists], d.Err))
}

// ListMachines implements [driver.Driver].
func (d *FakeDriver) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return &driver.ListMachinesResponse{MachineList: d.fakeVMs}, d.Err
}

// GetVolumeIDs implements [driver.Driver]. There are no volumes.
func (d *FakeDriver) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{VolumeIDs: []string{}}, d.Err
}

// GenerateMachineClassForMigration was a method of [driver.Driver] in old releases of MCM.
func (d *FakeDriver) GenerateMachineClassForMigration(context.Context, *GenerateMachineClassForMigrationRequest) (*GenerateMachineClassForMigrationResponse, error) {
	return &GenerateMachineClassForMigrationResponse{}, d.Err
}
