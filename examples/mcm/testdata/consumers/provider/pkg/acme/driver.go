// SPDX-License-Identifier: Apache-2.0

// Package acme is the driver of the Acme cloud.
package acme

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecontroller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
)

// Provider is the provider of the classes of this driver.
const Provider = "Acme"

type machineDriver struct{ cloud *Cloud }

var _ driver.Driver = &machineDriver{}

// NewDriver returns a driver of a cloud.
func NewDriver(cloud *Cloud) driver.Driver { return &machineDriver{cloud} }

type providerSpec struct {
	Flavor string `json:"flavor"`
}

// CreateMachine creates a server.
func (d *machineDriver) CreateMachine(_ context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	defer observe("CreateMachine", time.Now())
	if err := validate(req.MachineClass); err != nil {
		return nil, err
	}
	userData := string(req.Secret.Data["userData"])
	if strings.Contains(userData, machinecontroller.BootstrapTokenPlaceholder) {
		return nil, status.Error(codes.Internal, "the bootstrap token is missing")
	}
	id, err := d.cloud.create(req.Machine.Name)
	if err != nil {
		return nil, failed("CreateMachine", err)
	}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: nodeName(req.Machine), LastKnownState: "created"}, nil
}

// InitializeMachine has nothing to do.
func (d *machineDriver) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "servers need no initialization")
}

// DeleteMachine deletes a server.
func (d *machineDriver) DeleteMachine(_ context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if err := d.cloud.remove(req.Machine.Name); err != nil && !errors.Is(err, errNoServer) {
		return nil, failed("DeleteMachine", err)
	}
	return &driver.DeleteMachineResponse{LastKnownState: machineutils.InitiateVMDeletion}, nil
}

// GetMachineStatus finds a server.
func (d *machineDriver) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	for id, name := range d.cloud.list() {
		if name == req.Machine.Name {
			return &driver.GetMachineStatusResponse{ProviderID: id, NodeName: nodeName(req.Machine)}, nil
		}
	}
	return nil, failed("GetMachineStatus", errNoServer)
}

// ListMachines lists all servers.
func (d *machineDriver) ListMachines(_ context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if err := validate(req.MachineClass); err != nil {
		return nil, err
	}
	return &driver.ListMachinesResponse{MachineList: d.cloud.list()}, nil
}

// GetVolumeIDs returns the handles of CSI volumes.
func (d *machineDriver) GetVolumeIDs(_ context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	var ids []string
	for _, spec := range req.PVSpecs {
		if spec.CSI != nil {
			ids = append(ids, spec.CSI.VolumeHandle)
		}
	}
	return &driver.GetVolumeIDsResponse{VolumeIDs: ids}, nil
}

func (d *machineDriver) GenerateMachineClassForMigration(context.Context, *driver.GenerateMachineClassForMigrationRequest) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return &driver.GenerateMachineClassForMigrationResponse{}, nil
}

func validate(class *machinev1alpha1.MachineClass) error {
	if class.Provider != Provider {
		return status.Error(codes.InvalidArgument, fmt.Sprintf("requested for provider '%s', we only support '%s'", class.Provider, Provider))
	}
	spec := &providerSpec{}
	if err := json.Unmarshal(class.ProviderSpec.Raw, spec); err != nil {
		return status.WrapError(codes.InvalidArgument, err.Error(), err)
	}
	return nil
}

func nodeName(m *machinev1alpha1.Machine) string {
	if name := m.Labels[machinev1alpha1.NodeLabelKey]; name != "" {
		return name
	}
	return m.Name
}

func failed(operation string, err error) error {
	code := codes.Internal
	switch {
	case errors.Is(err, errQuota):
		code = codes.ResourceExhausted
	case errors.Is(err, errNoServer):
		code = codes.NotFound
	}
	metrics.DriverFailedAPIRequests.WithLabelValues(Provider, operation, code.String()).Inc()
	return status.WrapError(code, err.Error(), err)
}

func observe(operation string, began time.Time) {
	metrics.APIRequestCount.WithLabelValues(Provider, "servers").Inc()
	metrics.DriverAPIRequestDuration.WithLabelValues(Provider, operation).Observe(time.Since(began).Seconds())
}
