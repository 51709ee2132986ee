// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
)

// BenchmarkGetMachineStatus measures what the wire costs a call.
func BenchmarkGetMachineStatus(b *testing.B) {
	simulated := drivertest.NewCloud(drivertest.CloudOptions{})
	class, secret := simulated.MachineClass("shoot", "small"), simulated.Secret("shoot", "small")
	_, err := simulated.CreateMachine(b.Context(), &driver.CreateMachineRequest{Machine: machineNamed("a"), MachineClass: class, Secret: secret})
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		d    driver.Driver
	}{{"direct", simulated}, {"over the wire", dial(b, simulated)}} {
		for _, machine := range []string{"a", "absent"} {
			req := &driver.GetMachineStatusRequest{Machine: machineNamed(machine), MachineClass: class, Secret: secret}
			b.Run(c.name+"/"+machine, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = c.d.GetMachineStatus(b.Context(), req)
				}
			})
		}
	}
}
