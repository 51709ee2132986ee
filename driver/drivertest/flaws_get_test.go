// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// getFlaws are the flaws of one operation.
var getFlaws = map[string]flaw{
	"says Unknown instead of NotFound": {
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				resp, err := b.Cloud.GetMachineStatus(ctx, r)
				if codes.Of(err) == codes.NotFound {
					err = status.Error(codes.Unknown, "not found")
				}
				return resp, err
			}
		},
		caught: []string{"GetWithoutVM", "GetAfterDelete"},
	},
	"says it in the text and not in the code": {
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				resp, err := b.Cloud.GetMachineStatus(ctx, r)
				if err != nil && ctx.Err() == nil {
					err = errors.New(err.Error())
				}
				return resp, err
			}
		},
		caught: []string{"GetWithoutVM", "ErrorsHaveCodes"},
	},
	"finds nothing without a provider ID": {
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				if r != nil && r.Machine != nil && r.Machine.Spec.ProviderID == "" {
					return nil, status.Error(codes.NotFound, "no id")
				}
				return b.Cloud.GetMachineStatus(ctx, r)
			}
		},
		caught: []string{"GetFindsByName"},
	},
	"finds nothing with a provider ID": {
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				if r != nil && r.Machine != nil && r.Machine.Spec.ProviderID != "" {
					return nil, status.Error(codes.NotFound, "no such id")
				}
				return b.Cloud.GetMachineStatus(ctx, r)
			}
		},
		caught: []string{"GetFindsByProviderID"},
	},
	"finds what was deleted": {
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				resp, err := b.Cloud.GetMachineStatus(ctx, r)
				if codes.Of(err) == codes.NotFound && strings.Contains(b.History().String(), r.Machine.Name+",") {
					return &driver.GetMachineStatusResponse{ProviderID: "old"}, nil
				}
				return resp, err
			}
		},
		caught: []string{"GetAfterDelete", "DeleteRemovesAll"},
	},
	"looks without minding its context": {
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				if ctx.Err() != nil {
					return &driver.GetMachineStatusResponse{}, nil
				}
				return b.Cloud.GetMachineStatus(ctx, r)
			}
		},
		caught: []string{"EndedContext"},
	},
	"gives another ID every time": {
		breakIt: func(b *broken) {
			var n atomic.Int64
			b.get = answering(b.Cloud.GetMachineStatus, func(resp *driver.GetMachineStatusResponse) { resp.ProviderID += fmt.Sprintf("#%d", n.Add(1)/2) })
		},
		caught: []string{"IdentityIsStable"},
	},
	"gives all VMs one ID": {
		breakIt: func(b *broken) {
			b.create = answering(b.Cloud.CreateMachine, func(resp *driver.CreateMachineResponse) { resp.ProviderID = "the-vm" })
		},
		caught: []string{"IdentityIsStable"},
	},
	"says Uninitialized without saying of what": {
		options: CloudOptions{NeedsInitialization: true},
		breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
				resp, err := b.Cloud.GetMachineStatus(ctx, r)
				if err != nil {
					resp = nil
				}
				return resp, err
			}
		},
		caught: []string{"UninitializedHasIdentity"},
	},
}
