// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// sideFlaws are the flaws of one operation.
var sideFlaws = map[string]flaw{
	"deletes all side resources of a machine": {
		breakIt: func(b *broken) {
			b.removeSide = func(ctx context.Context, r *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
				resp, err := b.Cloud.DeleteSideResource(ctx, r)
				for _, other := range b.Snapshot().Of(r.Resource.MachineName).Leftovers() {
					_, _ = b.Cloud.DeleteSideResource(ctx, &driver.DeleteSideResourceRequest{Resource: other, MachineClass: r.MachineClass, Secret: r.Secret})
				}
				return resp, err
			}
		},
		caught: []string{"DeleteSideResourceRemovesOne"},
	},
	"only says that it deletes a side resource": {
		breakIt: func(b *broken) {
			b.removeSide = func(context.Context, *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
				return &driver.DeleteSideResourceResponse{}, nil
			}
		},
		caught: []string{"DeleteSideResourceRemovesOne", "DeleteSideResourceKeepsVMs"},
	},
	"fails to delete a side resource that is gone": {
		breakIt: func(b *broken) {
			b.removeSide = func(ctx context.Context, r *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
				resp, err := b.Cloud.DeleteSideResource(ctx, r)
				if codes.Of(err) == codes.NotFound {
					err = status.Error(codes.Internal, "no such thing")
				}
				return resp, err
			}
		},
		caught: []string{"DeleteSideResourceRemovesOne"},
	},
	"takes the side resources of a VM away": {
		breakIt: func(b *broken) {
			b.removeSide = func(ctx context.Context, r *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
				resp, err := b.Cloud.DeleteSideResource(ctx, r)
				if codes.Of(err) == codes.FailedPrecondition {
					b.Terminate(r.Resource.ProviderID)
				}
				return resp, err
			}
		},
		caught: []string{"DeleteSideResourceKeepsVMs"},
	},
}
