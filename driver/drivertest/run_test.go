// SPDX-License-Identifier: Apache-2.0

package drivertest_test

import (
	"testing"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestRun_DriverWithoutSecret_KeepsTheContract(t *testing.T) {
	d := &myDriver{}
	drivertest.Run(t, func(*testing.T) drivertest.Harness {
		return drivertest.Harness{
			New:          func() driver.Driver { return d },
			MachineClass: &v1alpha1.MachineClass{Provider: "mycloud"},
		}
	})
}
