// SPDX-License-Identifier: Apache-2.0

package drivertest_test

import (
	"cmp"
	"context"
	"sync"
	"testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// myDriver has a map of VM names in place of a cloud.
type myDriver struct{ vms sync.Map }

// check returns the name of the VM of a request, or an error with a code.
func check(ctx context.Context, m *v1alpha1.Machine, class *v1alpha1.MachineClass) (string, error) {
	if m == nil || class == nil || class.Provider != "mycloud" {
		return "", status.Error(codes.InvalidArgument, "a machine and a class of provider mycloud are required")
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return m.Name, nil
}

func (d *myDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	req = cmp.Or(req, &driver.CreateMachineRequest{})
	name, err := check(ctx, req.Machine, req.MachineClass)
	if err != nil {
		return nil, err
	}
	d.vms.Store(name, true) // the name is unique: a second call makes no second VM
	return &driver.CreateMachineResponse{ProviderID: "mycloud:///" + name, NodeName: name}, nil
}

func (d *myDriver) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	req = cmp.Or(req, &driver.GetMachineStatusRequest{})
	name, err := check(ctx, req.Machine, req.MachineClass)
	if err != nil {
		return nil, err
	}
	if _, found := d.vms.Load(name); !found {
		return nil, status.Error(codes.NotFound, "no VM "+name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: "mycloud:///" + name, NodeName: name}, nil
}

func (d *myDriver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	req = cmp.Or(req, &driver.DeleteMachineRequest{})
	name, err := check(ctx, req.Machine, req.MachineClass)
	if err != nil {
		return nil, err
	}
	if _, found := d.vms.LoadAndDelete(name); !found {
		return nil, status.Error(codes.NotFound, "no VM "+name)
	}
	return &driver.DeleteMachineResponse{}, nil
}

func (d *myDriver) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	req = cmp.Or(req, &driver.ListMachinesRequest{})
	if _, err := check(ctx, &v1alpha1.Machine{}, req.MachineClass); err != nil {
		return nil, err
	}
	list := map[string]string{}
	for name := range d.vms.Range {
		list["mycloud:///"+name.(string)] = name.(string)
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

func (*myDriver) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "VMs need no initialization")
}

func (*myDriver) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return nil, status.Error(codes.Unimplemented, "volumes need no translation")
}

// A provider project has a test like this one, with its own driver, class and Secret. For a real
// cloud it sets Settle to minutes.
func ExampleRun() {
	TestConformance := func(t *testing.T) {
		drivertest.Run(t, func(*testing.T) drivertest.Harness {
			d := &myDriver{}
			return drivertest.Harness{
				New:          func() driver.Driver { return d },
				MachineClass: &v1alpha1.MachineClass{Provider: "mycloud"},
			}
		})
	}
	_ = TestConformance // go test runs it; each promise is a subtest
	// Output:
}
