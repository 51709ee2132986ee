// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// contextFlaws are the flaws with an ended context.
var contextFlaws = map[string]flaw{
	"ignores its context": {
		options: slow(),
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				return b.Cloud.CreateMachine(context.WithoutCancel(ctx), r)
			}
		},
		caught: []string{"EndedContext"},
	},
	"answers long after its context has ended": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				time.Sleep(10 * time.Minute) // of the bubble
				return b.Cloud.CreateMachine(ctx, r)
			}
		},
		caught: []string{"EndedContext", "CanceledCreate"},
	},
	"calls the end of its context Internal": {
		options: slow(),
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if ctx.Err() != nil {
					err = status.WrapError(codes.Internal, "failed", err)
				}
				return resp, err
			}
		},
		caught: []string{"EndedContext", "CanceledCreate"},
	},
	"makes a VM in the background when it is cut off": {
		options: slow(),
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if err != nil && ctx.Err() != nil && r != nil {
					b.AddVM(VM{Namespace: r.Machine.Namespace, Machine: r.Machine.Name})
				}
				return resp, err
			}
		},
		caught: []string{"EndedContext", "CanceledCreate"},
	},
}
