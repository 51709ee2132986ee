// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"maps"

	"github.com/machinist-dev/machinist/driver"
)

// broken is a driver with one error. The methods that are set replace those of the cloud.
type broken struct {
	*Cloud
	create     method[driver.CreateMachineRequest, driver.CreateMachineResponse]
	initialize method[driver.InitializeMachineRequest, driver.InitializeMachineResponse]
	remove     method[driver.DeleteMachineRequest, driver.DeleteMachineResponse]
	get        method[driver.GetMachineStatusRequest, driver.GetMachineStatusResponse]
	list       method[driver.ListMachinesRequest, driver.ListMachinesResponse]
	volumes    method[driver.GetVolumeIDsRequest, driver.GetVolumeIDsResponse]
	removeSide method[driver.DeleteSideResourceRequest, driver.DeleteSideResourceResponse]
}

func (b *broken) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return either(b.create, b.Cloud.CreateMachine)(ctx, r)
}

func (b *broken) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return either(b.initialize, b.Cloud.InitializeMachine)(ctx, r)
}

func (b *broken) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return either(b.remove, b.Cloud.DeleteMachine)(ctx, r)
}

func (b *broken) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return either(b.get, b.Cloud.GetMachineStatus)(ctx, r)
}

func (b *broken) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return either(b.list, b.Cloud.ListMachines)(ctx, r)
}

func (b *broken) GetVolumeIDs(ctx context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return either(b.volumes, b.Cloud.GetVolumeIDs)(ctx, r)
}

func (b *broken) DeleteSideResource(ctx context.Context, r *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	return either(b.removeSide, b.Cloud.DeleteSideResource)(ctx, r)
}

// method is a method of a driver.
type method[Q, R any] func(context.Context, *Q) (*R, error)

// either returns set if it is not nil, otherwise other.
func either[Q, R any](set, other method[Q, R]) method[Q, R] {
	if set != nil {
		return set
	}
	return other
}

// answering returns a method whose responses are edited.
func answering[Q, R any](call method[Q, R], edit func(*R)) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		resp, err := call(ctx, q)
		if resp != nil {
			edit(resp)
		}
		return resp, err
	}
}

// A flaw is one error of a driver.
type flaw struct {
	options CloudOptions
	breakIt func(b *broken)
	harness func(h *Harness)
	caught  []string // cases that must fail
}

// flaws returns all errors of drivers that the kit must report.
func flaws() map[string]flaw {
	all := map[string]flaw{}
	for _, group := range []map[string]flaw{createFlaws, getFlaws, deleteFlaws, listFlaws, sideFlaws, initializeFlaws, volumeFlaws, requestFlaws, contextFlaws} {
		maps.Copy(all, group)
	}
	return all
}
