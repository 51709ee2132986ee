// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"sync"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

// VMsOf returns a function for [Nodes].VMs that returns the VMs of a simulated cloud. A VM is up if
// it runs and is initialized. Its token is read from its user data. A nil cloud has no VMs. The
// function is safe for several goroutines.
func VMsOf(cloud *drivertest.Cloud) func() []VM {
	var mu sync.Mutex
	tokens := map[string]string{} // by provider ID; user data does not change
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
