// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A wrapper embeds the driver it wraps and replaces what it wants to. This one
// keeps a provider from making VMs at night. With Unwrap, the optional interfaces
// of the driver inside are found, too.
type dayOnly struct {
	driver.Driver
	night bool
}

func (d dayOnly) Unwrap() driver.Driver { return d.Driver }

func (d dayOnly) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if d.night {
		return nil, status.Error(codes.Unavailable, "the data centre sleeps")
	}
	return d.Driver.CreateMachine(ctx, req)
}

func Example_wrapper() {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{})
	req := &driver.CreateMachineRequest{
		Machine:      &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "worker-x7k2p"}},
		MachineClass: cloud.MachineClass("shoot", "small"),
		Secret:       cloud.Secret("shoot", "small"),
	}
	_, err := dayOnly{Driver: cloud, night: true}.CreateMachine(context.Background(), req)
	fmt.Println(codes.Of(err))
	resp, err := dayOnly{Driver: cloud}.CreateMachine(context.Background(), req)
	fmt.Println(resp.ProviderID, err)
	_, ok := driver.As[driver.SideResourceLister](dayOnly{Driver: cloud})
	fmt.Println("lists side resources:", ok)
	fmt.Println(req)
	// Output:
	// Unavailable
	// simulated:///shoot/worker-x7k2p/1 <nil>
	// lists side resources: true
	// CreateMachine(machine "shoot/worker-x7k2p", class "shoot/small", secret "shoot/small" with 2 keys)
}

func ExampleWithDeadline() {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Faults: []drivertest.Fault{{Kind: drivertest.Hang}}})
	d := driver.WithDeadline(cloud, driver.Timeouts{ListMachines: 10 * time.Millisecond})

	_, err := d.ListMachines(context.Background(), &driver.ListMachinesRequest{
		MachineClass: cloud.MachineClass("shoot", "small"),
		Secret:       cloud.Secret("shoot", "small"),
	})
	fmt.Println(codes.Of(err))
	// Output:
	// DeadlineExceeded
}

func ExampleObserve() {
	clk := clocktesting.NewFakeClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clk})
	d := driver.Observe(cloud, func(c driver.Call) { fmt.Println(c) }, clk)

	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "worker-x7k2p"}}
	class, secret := cloud.MachineClass("shoot", "small"), cloud.Secret("shoot", "small")
	_, _ = d.GetMachineStatus(context.Background(), &driver.GetMachineStatusRequest{Machine: machine, MachineClass: class, Secret: secret})
	_, _ = d.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: machine, MachineClass: class, Secret: secret})
	_, _ = d.ListMachines(context.Background(), &driver.ListMachinesRequest{MachineClass: class, Secret: secret})
	// Output:
	// GetMachineStatus of machine "shoot/worker-x7k2p": NotFound after 0s
	// CreateMachine of machine "shoot/worker-x7k2p": OK after 0s
	// ListMachines of class "shoot/small": OK after 0s
}
