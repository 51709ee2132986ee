// SPDX-License-Identifier: Apache-2.0

package drivertest_test

import (
	"context"
	"maps"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
)

// broken is a driver with one fault: the methods that are set replace those of
// the cloud.
type broken struct {
	*drivertest.Cloud
	create     func(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error)
	initialize func(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error)
	remove     func(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error)
	get        func(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error)
	list       func(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error)
	volumes    func(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error)
}

func (b *broken) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if b.create != nil {
		return b.create(ctx, r)
	}
	return b.Cloud.CreateMachine(ctx, r)
}

func (b *broken) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	if b.initialize != nil {
		return b.initialize(ctx, r)
	}
	return b.Cloud.InitializeMachine(ctx, r)
}

func (b *broken) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if b.remove != nil {
		return b.remove(ctx, r)
	}
	return b.Cloud.DeleteMachine(ctx, r)
}

func (b *broken) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if b.get != nil {
		return b.get(ctx, r)
	}
	return b.Cloud.GetMachineStatus(ctx, r)
}

func (b *broken) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if b.list != nil {
		return b.list(ctx, r)
	}
	return b.Cloud.ListMachines(ctx, r)
}

func (b *broken) GetVolumeIDs(ctx context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	if b.volumes != nil {
		return b.volumes(ctx, r)
	}
	return b.Cloud.GetVolumeIDs(ctx, r)
}

// A flaw breaks a driver in one way.
type flaw struct {
	options drivertest.CloudOptions
	breakIt func(b *broken)
	harness func(h *drivertest.Harness)
	caught  []string // cases that must fail
}

// flaws are all the ways of being broken that the kit has to notice.
func flaws() map[string]flaw {
	all := map[string]flaw{}
	for _, group := range []map[string]flaw{createFlaws, getFlaws, deleteFlaws, listFlaws, initializeFlaws, volumeFlaws, requestFlaws, contextFlaws} {
		maps.Copy(all, group)
	}
	return all
}
