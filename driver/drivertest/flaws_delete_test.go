// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// deleteFlaws are the flaws of one operation.
var deleteFlaws = map[string]flaw{
	"does nothing without a provider ID": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				if r != nil && r.Machine != nil && r.Machine.Spec.ProviderID == "" && ctx.Err() == nil {
					return &driver.DeleteMachineResponse{}, nil
				}
				return b.Cloud.DeleteMachine(ctx, r)
			}
		},
		caught: []string{"DeleteFindsByName", "CreateAfterFailure"},
	},
	"fails to delete what is not there": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				resp, err := b.Cloud.DeleteMachine(ctx, r)
				if codes.Of(err) == codes.NotFound {
					err = status.Error(codes.Internal, "no such VM")
				}
				return resp, err
			}
		},
		caught: []string{"DeleteWithoutVM", "DeleteTwice"},
	},
	"leaves the disks behind": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				defer b.Inject(Fault{Operation: driver.OpDeleteMachine, Kind: Partial, Steps: 1})()
				resp, err := b.Cloud.DeleteMachine(ctx, r)
				if codes.Of(err) == codes.Unavailable {
					return &driver.DeleteMachineResponse{}, nil
				}
				return resp, err
			}
		},
		caught: []string{"DeleteRemovesAll"},
	},
	"only says that it deletes": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				_, err := b.Cloud.DeleteMachine(ctx, &driver.DeleteMachineRequest{
					Machine: &v1alpha1.Machine{}, MachineClass: r.MachineClass, Secret: r.Secret,
				})
				if codes.Of(err) != codes.InvalidArgument {
					return nil, err
				}
				return &driver.DeleteMachineResponse{}, nil
			}
		},
		caught: []string{"DeleteRemovesAll", "DeleteTwice", "ListAfterDelete", "GetAfterDelete"},
	},
	"deletes all that it finds": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				resp, err := b.Cloud.DeleteMachine(ctx, r)
				if err == nil {
					for _, v := range b.Snapshot().VMs {
						b.Terminate(v.ProviderID)
					}
				}
				return resp, err
			}
		},
		caught: []string{"DeleteKeepsOthers"},
	},
	"says nothing of a deletion": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				if _, err := b.Cloud.DeleteMachine(ctx, r); err != nil {
					return nil, err
				}
				return nil, nil //nolint:nilnil // the flaw
			}
		},
		caught: []string{"DeleteRemovesAll"},
	},
	"leaves what a failed create made": {
		breakIt: func(b *broken) {
			b.remove = func(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
				if r != nil && r.Machine != nil && len(b.Snapshot().Of(r.Machine.Name).VMs) == 0 && ctx.Err() == nil {
					return nil, status.Error(codes.NotFound, "there is no VM")
				}
				return b.Cloud.DeleteMachine(ctx, r)
			}
		},
		caught: []string{"CreateAfterFailure"},
	},
}
