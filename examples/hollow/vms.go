// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"sync"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

// VMsOf returns what tells [Nodes] of the VMs of a simulated cloud: all that
// exist, since when those are up that run and are initialised, and the bootstrap
// token that stands in their user data. A nil cloud has none. It is safe for
// several goroutines.
func VMsOf(cloud *drivertest.Cloud) func() []VM {
	var mu sync.Mutex
	tokens := map[string]string{} // by provider ID; user data never changes
	return func() []VM {
		if cloud == nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		snapshot := cloud.Snapshot()
		vms, still := make([]VM, 0, len(snapshot.VMs)), make(map[string]string, len(snapshot.VMs))
		for _, v := range snapshot.VMs {
			token, read := tokens[v.ProviderID]
			if !read {
				token = tokenIn(cloud.UserData(v.ProviderID))
			}
			still[v.ProviderID] = token
			vm := VM{ProviderID: v.ProviderID, NodeName: v.NodeName, Token: token}
			if v.State == drivertest.VMRunning && v.Initialized {
				vm.UpSince = v.ReadyAt
			}
			vms = append(vms, vm)
		}
		tokens = still
		return vms
	}
}
