// SPDX-License-Identifier: Apache-2.0

package drivertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestCloudKeepsTheContract(t *testing.T) {
	drivertest.Run(t, func(*testing.T) drivertest.Harness {
		return drivertest.NewCloud(drivertest.CloudOptions{}).Harness()
	})
}

func TestZeroCloudKeepsTheContract(t *testing.T) {
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return new(drivertest.Cloud).Harness() })
}

// slow is a cloud on which everything takes its time.
func slow() drivertest.CloudOptions {
	return drivertest.CloudOptions{
		CreateLatency: 20 * time.Second, DeleteLatency: 3 * time.Second, CallLatency: time.Second,
		BootTime: time.Minute, ShutdownTime: 40 * time.Second, Lag: 15 * time.Second,
	}
}

func TestCloudKeepsTheContractUnderEveryOption(t *testing.T) {
	for name, options := range map[string]drivertest.CloudOptions{
		"with latency":                 {CreateLatency: time.Minute, DeleteLatency: time.Second, CallLatency: time.Second},
		"with lag":                     {Lag: 10 * time.Second},
		"with a slow shutdown":         {ShutdownTime: time.Minute},
		"slow in everything":           slow(),
		"with initialisation":          {NeedsInitialization: true, Lag: time.Second},
		"without side resources":       {SideResources: []string{}},
		"with four side resources":     {SideResources: []string{"disk", "disk", "nic", "address"}},
		"with a credential":            {Credential: "a-long-credential"},
		"with other node names":        {NodeName: func(m string) string { return "ip-" + m + ".internal" }},
		"with another provider":        {Provider: "acme"},
		"without GetMachineStatus":     {Unimplemented: []driver.Operation{driver.OpGetMachineStatus}},
		"without GetVolumeIDs":         {Unimplemented: []driver.Operation{driver.OpGetVolumeIDs}},
		"with a quota that is enough":  {Quota: 4},
		"with negative options":        {CreateLatency: -1, BootTime: -1, ShutdownTime: -1, Lag: -1, Quota: -1, Throttle: drivertest.Throttle{Calls: -1, Per: -1}},
		"with other VMs in its region": {},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range drivertest.Cases() {
				t.Run(c.Name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cloud := drivertest.NewCloud(options)
						if name == "with other VMs in its region" {
							cloud.Plant(drivertest.VM{Namespace: "elsewhere", Machine: "vm-0"})
						}
						h := cloud.Harness()
						if f := options.NodeName; f != nil {
							h.NodeName = func(m *v1alpha1.Machine) string { return f(m.Name) }
						}
						err := drivertest.Check(t.Context(), h, c)
						if !errors.Is(err, drivertest.ErrNotOffered) {
							require.NoError(t, err)
						}
						time.Sleep(h.Settle) // of the bubble
						require.Empty(t, cloud.Snapshot().Of("vm-0").Leftovers())
						for _, v := range cloud.Snapshot().VMs {
							require.Equal(t, "elsewhere", v.Namespace, "a case left something behind")
						}
					})
				})
			}
		})
	}
}

func TestEveryPromiseIsOfferedBySomeCloud(t *testing.T) {
	// A case that nobody can reach is none.
	for _, c := range drivertest.Cases() {
		require.NotEmpty(t, c.Promise)
		plain := drivertest.Check(t.Context(), drivertest.NewCloud(drivertest.CloudOptions{}).Harness(), c)
		rich := drivertest.Check(t.Context(), drivertest.NewCloud(drivertest.CloudOptions{NeedsInitialization: true}).Harness(), c)
		require.True(t, plain == nil || rich == nil, "%s: %v, %v", c.Name, plain, rich)
	}
}

func TestKitCatchesBrokenDrivers(t *testing.T) {
	cases := map[string]drivertest.Case{}
	for _, c := range drivertest.Cases() {
		cases[c.Name] = c
	}
	missed := map[string]bool{}
	for name := range cases {
		missed[name] = true
	}
	for name, f := range flaws() {
		t.Run(name, func(t *testing.T) {
			for _, want := range f.caught {
				require.Contains(t, cases, want)
				delete(missed, want)
				synctest.Test(t, func(t *testing.T) {
					b := &broken{Cloud: drivertest.NewCloud(f.options)}
					f.breakIt(b)
					h := b.Harness()
					h.New = func() driver.Driver { return b }
					if f.harness != nil {
						f.harness(&h)
					}
					err := drivertest.Check(t.Context(), h, cases[want])
					time.Sleep(time.Hour) // of the bubble: calls that were left behind come to their end
					require.Error(t, err, "the case %s lets this pass", want)
					require.NotErrorIs(t, err, drivertest.ErrNotOffered)
					require.ErrorContains(t, err, cases[want].Promise, "the failure does not name the promise")
				})
			}
		})
	}
	require.Empty(t, missed, "no broken driver shows that these cases can fail")
}

func TestKitNamesWhatIsNotOffered(t *testing.T) {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Unimplemented: []driver.Operation{driver.OpGetMachineStatus, driver.OpGetVolumeIDs}})
	h := cloud.Harness()
	h.OtherScope, h.FailCreate = nil, nil
	var absent []string
	for _, c := range drivertest.Cases() {
		if err := drivertest.Check(t.Context(), h, c); errors.Is(err, drivertest.ErrNotOffered) {
			absent = append(absent, c.Name)
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, []string{
		"CreateCleansUp", "GetFindsByName", "GetFindsByProviderID", "GetOfNothing", "GetAfterDelete", "ListStaysInScope",
		"InitializeFinishes", "InitializeOfNothing", "UninitializedTellsIdentity", "VolumesOfOthers", "VolumesInOrder",
	}, absent)
}

func TestKitRefusesAHarnessThatLacksTheNecessary(t *testing.T) {
	for _, c := range drivertest.Cases() {
		require.Error(t, drivertest.Check(t.Context(), drivertest.Harness{}, c))
	}
	require.Error(t, drivertest.Check(t.Context(), new(drivertest.Cloud).Harness(), drivertest.Case{}))
}

func TestKitCleansUpAfterACaseThatFails(t *testing.T) {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{})
	failing := drivertest.Case{Name: "Failing", Promise: "Something.", Check: func(ctx context.Context, e *drivertest.Env) error {
		for range 3 {
			if _, err := e.Create(ctx, e.Machine()); err != nil {
				return err
			}
		}
		return errors.New("broken")
	}}
	require.ErrorContains(t, drivertest.Check(t.Context(), cloud.Harness(), failing), "broken")
	require.True(t, cloud.Snapshot().Empty(), cloud.Snapshot())
	require.Equal(t, 3, cloud.History().MaxVMs(nil))
}

func TestKitCleansUpWhatItCannotSeeYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := drivertest.NewCloud(drivertest.CloudOptions{Lag: time.Minute})
		cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Kind: drivertest.LoseResponse})
		lost := drivertest.Case{Name: "Lost", Promise: "Something.", Check: func(ctx context.Context, e *drivertest.Env) error {
			_, err := e.Create(ctx, e.Machine())
			return err
		}}
		require.Error(t, drivertest.Check(t.Context(), cloud.Harness(), lost))
		require.Equal(t, 1, cloud.History().MaxVMs(nil))
		require.True(t, cloud.Snapshot().Empty(), cloud.Snapshot())
	})
}

func TestKitTellsWhenTheCleanUpFails(t *testing.T) {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{})
	cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Code: codes.PermissionDenied})
	only := drivertest.Case{Name: "Only", Promise: "Something.", Check: func(ctx context.Context, e *drivertest.Env) error {
		_, err := e.Create(ctx, e.Machine())
		return err
	}}
	require.ErrorContains(t, drivertest.Check(t.Context(), cloud.Harness(), only), "look for machines named vm-")
}

func TestKitChecksDriversWithoutSecret(t *testing.T) {
	b := &broken{Cloud: drivertest.NewCloud(drivertest.CloudOptions{})}
	h := b.Harness()
	secret := h.Secret
	h.Secret = nil
	h.New = func() driver.Driver { return withSecret{b.Cloud, secret} }
	for _, c := range drivertest.Cases() {
		if err := drivertest.Check(t.Context(), h, c); !errors.Is(err, drivertest.ErrNotOffered) {
			require.NoError(t, err, c.Name)
		}
	}
}

// withSecret is a driver that needs no Secret, for it has its own.
type withSecret struct {
	cloud  *drivertest.Cloud
	secret *corev1.Secret
}

func (d withSecret) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if r != nil {
		r = &driver.CreateMachineRequest{Machine: r.Machine, MachineClass: r.MachineClass, Secret: d.secret}
	}
	return d.cloud.CreateMachine(ctx, r)
}

func (d withSecret) InitializeMachine(ctx context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	if r != nil {
		r = &driver.InitializeMachineRequest{Machine: r.Machine, MachineClass: r.MachineClass, Secret: d.secret}
	}
	return d.cloud.InitializeMachine(ctx, r)
}

func (d withSecret) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if r != nil {
		r = &driver.DeleteMachineRequest{Machine: r.Machine, MachineClass: r.MachineClass, Secret: d.secret}
	}
	return d.cloud.DeleteMachine(ctx, r)
}

func (d withSecret) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if r != nil {
		r = &driver.GetMachineStatusRequest{Machine: r.Machine, MachineClass: r.MachineClass, Secret: d.secret}
	}
	return d.cloud.GetMachineStatus(ctx, r)
}

func (d withSecret) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if r != nil {
		r = &driver.ListMachinesRequest{MachineClass: r.MachineClass, Secret: d.secret}
	}
	return d.cloud.ListMachines(ctx, r)
}

func (d withSecret) GetVolumeIDs(ctx context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return d.cloud.GetVolumeIDs(ctx, r)
}
