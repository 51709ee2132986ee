// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// createFlaws are the flaws of one operation.
var createFlaws = map[string]flaw{
	"makes another VM every time": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if err == nil && b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
					resp.ProviderID = b.AddVM(VM{Namespace: r.Machine.Namespace, Machine: r.Machine.Name}).ProviderID
				}
				return resp, err
			}
		},
		caught: []string{"CreateTwice", "CreateByAnotherProcess", "CreateConcurrently"},
	},
	"looks for an existing VM only where it may not be shown yet": {
		options: CloudOptions{Lag: 10 * time.Second, ForgetfulCreate: true},
		breakIt: func(*broken) {},
		caught:  []string{"CreateTwice", "CreateByAnotherProcess", "CreateConcurrently", "CreateWithNewUID"},
	},
	"remembers in memory what it made": {
		breakIt: func(b *broken) { rememberInMemory(b) },
		harness: func(h *Harness) {
			first := h.New().(*broken)
			h.New = func() driver.Driver {
				b := &broken{Cloud: first.Cloud}
				rememberInMemory(b)
				return b
			}
		},
		caught: []string{"CreateByAnotherProcess"},
	},
	"keys by UID": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if err != nil {
					return resp, err
				}
				for _, v := range b.Snapshot().Of(r.Machine.Name).VMs {
					if v.ProviderID == resp.ProviderID && v.UID != string(r.Machine.UID) {
						v := b.AddVM(VM{Namespace: v.Namespace, Machine: v.Machine, UID: string(r.Machine.UID)})
						resp.ProviderID = v.ProviderID
					}
				}
				return resp, err
			}
		},
		caught: []string{"CreateWithNewUID"},
	},
	"answers without a provider ID": {
		breakIt: func(b *broken) {
			b.create = answering(b.Cloud.CreateMachine, func(resp *driver.CreateMachineResponse) { resp.ProviderID = "" })
		},
		caught: []string{"CreateReturnsIdentity"},
	},
	"answers without a node name": {
		breakIt: func(b *broken) {
			b.create = answering(b.Cloud.CreateMachine, func(resp *driver.CreateMachineResponse) { resp.NodeName = "" })
		},
		caught: []string{"CreateReturnsIdentity"},
	},
	"makes a second VM and returns the first": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if err == nil && b.Calls(driver.OpCreateMachine, codes.OK) == 2 {
					b.AddVM(VM{Namespace: r.Machine.Namespace, Machine: r.Machine.Name})
				}
				return resp, err
			}
		},
		caught: []string{"CreateTwice"},
	},
	"answers with another provider ID the second time": {
		breakIt: func(b *broken) {
			b.create = answering(b.Cloud.CreateMachine, func(resp *driver.CreateMachineResponse) {
				if b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
					resp.ProviderID += "-again"
				}
			})
		},
		caught: []string{"CreateTwice"},
	},
	"names the node anew every time": {
		breakIt: func(b *broken) {
			var n atomic.Int64
			b.create = answering(b.Cloud.CreateMachine, func(resp *driver.CreateMachineResponse) { resp.NodeName = fmt.Sprintf("ip-10-0-0-%d", n.Add(1)) })
		},
		caught: []string{"CreateTwice", "GetFindsByName"},
	},
	"answers nothing": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				_, err := b.Cloud.CreateMachine(ctx, r)
				return nil, err
			}
		},
		caught: []string{"CreateReturnsIdentity"},
	},
	"takes the last answer for a lost one as a failure": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				if r != nil && r.Machine != nil && len(b.Snapshot().Of(r.Machine.Name).VMs) > 0 {
					return nil, status.Error(codes.AlreadyExists, "it is there")
				}
				return b.Cloud.CreateMachine(ctx, r)
			}
		},
		caught: []string{"CreateTwice", "CreateConcurrently", "RequestsAreUnchanged"},
	},
}

// rememberInMemory makes CreateMachine adopt only what the same process made.
func rememberInMemory(b *broken) {
	var mu sync.Mutex
	made := map[string]*driver.CreateMachineResponse{}
	b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
		if r == nil || r.Machine == nil || ctx.Err() != nil {
			return b.Cloud.CreateMachine(ctx, r)
		}
		mu.Lock()
		defer mu.Unlock()
		if resp := made[r.Machine.Name]; resp != nil {
			return resp, nil
		}
		resp, err := b.Cloud.CreateMachine(ctx, r)
		if err != nil {
			return resp, err
		}
		if b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
			resp.ProviderID = b.AddVM(VM{Namespace: r.Machine.Namespace, Machine: r.Machine.Name}).ProviderID
		}
		made[r.Machine.Name] = resp
		return resp, nil
	}
}
