// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
)

const (
	muteBefore incident = "the driver does nothing and returns neither response nor error"
	muteAfter  incident = "the driver returns neither response nor error"
)

// mute is a driver that returns neither a response nor an error.
type mute struct {
	*drivertest.Cloud
	acts bool // the call has its effect
}

func answerNothing[Q, R any](ctx context.Context, acts bool, call func(context.Context, *Q) (*R, error), request *Q) (*R, error) {
	if acts {
		_, _ = call(ctx, request)
	}
	return nil, nil //nolint:nilnil // what the fault is
}

func (d mute) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return answerNothing(ctx, d.acts, d.Cloud.CreateMachine, r)
}

func (d mute) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return answerNothing(ctx, d.acts, d.Cloud.InitializeMachine, r)
}

func (d mute) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return answerNothing(ctx, d.acts, d.Cloud.DeleteMachine, r)
}

func (d mute) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return answerNothing(ctx, d.acts, d.Cloud.GetMachineStatus, r)
}

// driver returns the driver of a call with an incident.
func (s *sim) driver(b incident) driver.Driver {
	if b == muteBefore || b == muteAfter {
		return mute{s.cloud, b == muteAfter}
	}
	return s.cloud
}
