// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"maps"
	"sync"

	"github.com/machinist-dev/machinist/driver"
)

// listFlaws are the flaws of one operation.
var listFlaws = map[string]flaw{
	"lists the first page": {
		breakIt: func(b *broken) {
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				resp, err := b.Cloud.ListMachines(ctx, r)
				for id := range listed(resp) {
					if len(resp.MachineList) > 2 {
						delete(resp.MachineList, id)
					}
				}
				return resp, err
			}
		},
		caught: []string{"ListIsComplete"},
	},
	"lists VMs by their own names": {
		breakIt: func(b *broken) {
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				resp, err := b.Cloud.ListMachines(ctx, r)
				for id, name := range listed(resp) {
					resp.MachineList[id] = "vm-" + name
				}
				return resp, err
			}
		},
		caught: []string{"ListIsComplete"},
	},
	"lists from a cache that never forgets": {
		breakIt: func(b *broken) {
			var mu sync.Mutex
			cache := map[string]string{}
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				resp, err := b.Cloud.ListMachines(ctx, r)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(cache, resp.MachineList)
				return &driver.ListMachinesResponse{MachineList: maps.Clone(cache)}, nil
			}
		},
		caught: []string{"ListAfterDelete", "DeleteRemovesAll"},
	},
	"lists what belongs to others": {
		breakIt: func(b *broken) {
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				resp, err := b.Cloud.ListMachines(ctx, r)
				if err == nil {
					for _, v := range b.Snapshot().VMs {
						resp.MachineList[v.ProviderID] = v.Machine
					}
				}
				return resp, err
			}
		},
		caught: []string{"ListStaysInScope"},
	},
}

// listed returns the list of a response that may be nil.
func listed(resp *driver.ListMachinesResponse) map[string]string {
	if resp == nil {
		return nil
	}
	return resp.MachineList
}
