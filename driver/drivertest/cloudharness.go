// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

// Harness returns a [Harness] for the cloud with all fields set. To check a driver that wraps
// the cloud, change its New.
func (c *Cloud) Harness() Harness {
	other := c.MachineClass("conformance", "other")
	other.ProviderSpec = runtime.RawExtension{Raw: []byte(`{"scope":"another"}`)}
	return Harness{
		New:          func() driver.Driver { return c },
		MachineClass: c.MachineClass("conformance", "small"),
		Secret:       c.Secret("conformance", "small"),
		Settle:       c.settle(),
		Clock:        c.options.Clock,
		OtherScope:   other,
		Volumes: []Volume{
			{Spec: c.Volume("vol-2"), ID: "vol-2"},
			{Spec: c.Volume("vol-1"), ID: "vol-1"},
		},
		FailCreate: func(machine string) {
			c.Inject(Fault{Operation: driver.OpCreateMachine, Machine: machine, Times: 1, Kind: Partial, Code: codes.Internal})
		},
	}
}

// settle returns how long the cloud needs until every request sees a change.
func (c *Cloud) settle() time.Duration {
	return max(0, c.options.Lag) + max(0, c.options.ShutdownTime)
}
