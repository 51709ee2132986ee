// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// provider is what a provider project writes: the six methods.
type provider struct{}

var _ driver.Driver = provider{}

func (provider) CreateMachine(_ context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	var (
		_ *v1alpha1.Machine      = req.Machine
		_ *v1alpha1.MachineClass = req.MachineClass
		_ *corev1.Secret         = req.Secret
	)
	return &driver.CreateMachineResponse{
		ProviderID: "", NodeName: "", LastKnownState: "", Addresses: []corev1.NodeAddress{},
	}, nil
}

func (provider) InitializeMachine(_ context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	_ = driver.InitializeMachineRequest{Machine: req.Machine, MachineClass: req.MachineClass, Secret: req.Secret}
	return &driver.InitializeMachineResponse{ProviderID: "", NodeName: "", Addresses: []corev1.NodeAddress{}},
		status.Error(codes.Unimplemented, "")
}

func (provider) DeleteMachine(_ context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	_ = driver.DeleteMachineRequest{Machine: req.Machine, MachineClass: req.MachineClass, Secret: req.Secret}
	return &driver.DeleteMachineResponse{LastKnownState: ""}, nil
}

func (provider) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	_ = driver.GetMachineStatusRequest{Machine: req.Machine, MachineClass: req.MachineClass, Secret: req.Secret}
	return &driver.GetMachineStatusResponse{ProviderID: "", NodeName: "", Addresses: []corev1.NodeAddress{}}, nil
}

func (provider) ListMachines(_ context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	_ = driver.ListMachinesRequest{MachineClass: req.MachineClass, Secret: req.Secret}
	return &driver.ListMachinesResponse{MachineList: map[string]string{}}, nil
}

func (provider) GetVolumeIDs(_ context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	var _ []*corev1.PersistentVolumeSpec = req.PVSpecs
	return &driver.GetVolumeIDsResponse{VolumeIDs: []string{}}, nil
}
