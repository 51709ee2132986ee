// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

// dial serves a driver and returns the client of it.
func dial(t testing.TB, d driver.Driver) *cloud.Client {
	t.Helper()
	server := httptest.NewServer(cloud.Handler(d))
	t.Cleanup(server.Close)
	return dialURL(t, server.URL)
}

// dialURL returns the client of a server.
func dialURL(t testing.TB, url string) *cloud.Client {
	t.Helper()
	client, err := cloud.Dial(url)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func TestClient_KeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]drivertest.CloudOptions{
		"of a cloud without latency":   {},
		"of a cloud that takes time":   {CreateLatency: 40 * time.Millisecond, DeleteLatency: 10 * time.Millisecond, ShutdownTime: 20 * time.Millisecond, Lag: 20 * time.Millisecond},
		"of a cloud that initializes":  {NeedsInitialization: true},
		"of a cloud with a credential": {Credential: "a credential of some length"},
		"of a cloud of few operations": {Unimplemented: []driver.Operation{driver.OpGetMachineStatus, driver.OpGetVolumeIDs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, func(t *testing.T) drivertest.Harness {
				simulated := drivertest.NewCloud(options)
				server := httptest.NewServer(cloud.Handler(simulated))
				h := simulated.Harness()
				h.New = func() driver.Driver { return dialURL(t, server.URL) }
				t.Cleanup(func() {
					server.Close()
					require.Empty(t, simulated.Snapshot().String()[len("nothing\n"):])
				})
				return h
			})
		})
	}
}

func TestClient_SameCalls_SameCloud(t *testing.T) {
	play := func(c *drivertest.Cloud, d driver.Driver) string {
		for _, kind := range []drivertest.FaultKind{drivertest.Refuse, drivertest.LoseResponse, drivertest.Partial} {
			c.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Kind: kind, Times: 1, LastKnownState: "half-way"})
		}
		class, secret := c.MachineClass("shoot", "small"), c.Secret("shoot", "small")
		for _, name := range []string{"a", "b", "a", "c", "c"} {
			_, _ = d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: machineNamed(name), MachineClass: class, Secret: secret})
		}
		_, _ = d.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: machineNamed("c"), MachineClass: class, Secret: secret})
		return c.Snapshot().String()
	}
	here := drivertest.NewCloud(drivertest.CloudOptions{})
	there := drivertest.NewCloud(drivertest.CloudOptions{})
	require.Equal(t, play(here, here), play(there, dial(t, there)))
	for _, op := range driver.Operations() {
		for _, code := range codes.All() {
			require.Equal(t, here.Calls(op, code), there.Calls(op, code), "%s %s", op, code)
		}
	}
	require.NotEmpty(t, here.Snapshot().VMs)
}
