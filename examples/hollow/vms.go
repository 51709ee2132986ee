// SPDX-License-Identifier: Apache-2.0

package hollow

import "github.com/machinist-dev/machinist/driver/drivertest"

// VMsOf returns what tells [Nodes] of the VMs of a simulated cloud: all that
// exist, and since when those are up that run and are initialised. A nil cloud
// has none. It is safe for several goroutines.
func VMsOf(cloud *drivertest.Cloud) func() []VM {
	return func() []VM {
		if cloud == nil {
			return nil
		}
		snapshot := cloud.Snapshot()
		vms := make([]VM, 0, len(snapshot.VMs))
		for _, v := range snapshot.VMs {
			vm := VM{ProviderID: v.ProviderID, NodeName: v.NodeName}
			if v.State == drivertest.VMRunning && v.Initialized {
				vm.UpSince = v.ReadyAt
			}
			vms = append(vms, vm)
		}
		return vms
	}
}
