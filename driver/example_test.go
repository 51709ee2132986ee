// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A call that hangs ends with DeadlineExceeded.
func ExampleWithDeadline() {
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Faults: []drivertest.Fault{{Kind: drivertest.Hang}}})
	d := driver.WithDeadline(cloud, driver.Timeouts{ListMachines: 10 * time.Millisecond})

	_, err := d.ListMachines(context.Background(), &driver.ListMachinesRequest{
		MachineClass: cloud.MachineClass("shop", "small"),
		Secret:       cloud.Secret("shop", "small"),
	})
	fmt.Println(codes.Of(err))
	// Output:
	// DeadlineExceeded
}

// Every call is printed with its code and duration.
func ExampleObserve() {
	clk := clocktesting.NewFakeClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clk})
	d := driver.Observe(cloud, func(c driver.Call) { fmt.Println(c) }, clk)

	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	class, secret := cloud.MachineClass("shop", "small"), cloud.Secret("shop", "small")
	_, _ = d.GetMachineStatus(context.Background(), &driver.GetMachineStatusRequest{Machine: machine, MachineClass: class, Secret: secret})
	_, _ = d.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: machine, MachineClass: class, Secret: secret})
	_, _ = d.ListMachines(context.Background(), &driver.ListMachinesRequest{MachineClass: class, Secret: secret})
	// Output:
	// GetMachineStatus of machine "shop/web-1": NotFound after 0s
	// CreateMachine of machine "shop/web-1": OK after 0s
	// ListMachines of class "shop/small": OK after 0s
}
