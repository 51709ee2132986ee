// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// initializeFlaws are the flaws of one operation.
var initializeFlaws = map[string]flaw{
	"fails to initialize twice": {
		options: CloudOptions{NeedsInitialization: true},
		breakIt: func(b *broken) {
			b.initialize = func(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
				if _, err := b.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: r.Machine, MachineClass: r.MachineClass, Secret: r.Secret}); err == nil {
					return nil, status.Error(codes.FailedPrecondition, "initialized already")
				}
				return b.Cloud.InitializeMachine(ctx, r)
			}
		},
		caught: []string{"InitializeCompletes"},
	},
	"initializes nothing": {
		options: CloudOptions{NeedsInitialization: true},
		breakIt: func(b *broken) {
			b.initialize = func(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
				return &driver.InitializeMachineResponse{}, nil
			}
		},
		caught: []string{"InitializeCompletes", "InitializeWithoutVM"},
	},
	"initializes under another identity": {
		options: CloudOptions{NeedsInitialization: true},
		breakIt: func(b *broken) {
			b.initialize = answering(b.Cloud.InitializeMachine, func(resp *driver.InitializeMachineResponse) { resp.ProviderID = "another" })
		},
		caught: []string{"InitializeCompletes"},
	},
	"is Uninitialized for ever": {
		options: CloudOptions{NeedsInitialization: true},
		breakIt: func(b *broken) {
			b.initialize = func(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
				return nil, status.Error(codes.Unimplemented, "not here")
			}
		},
		caught: []string{"UninitializedHasIdentity"},
	},
}
