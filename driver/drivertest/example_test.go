// SPDX-License-Identifier: Apache-2.0

package drivertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A provider project has a test like this one, with its own driver in New, and
// its own class, Secret and time to settle.
func ExampleRun() {
	TestConformance := func(t *testing.T) {
		drivertest.Run(t, func(*testing.T) drivertest.Harness {
			cloud := drivertest.NewCloud(drivertest.CloudOptions{}) // mycloud.New(…)
			return drivertest.Harness{
				New:          func() driver.Driver { return cloud },
				MachineClass: cloud.MachineClass("conformance", "small"),
				Secret:       cloud.Secret("conformance", "small"),
				Settle:       0, // 2 * time.Minute
			}
		})
	}
	_ = TestConformance // go test calls it; each promise is a subtest
	// Output:
}

func ExampleCloud() {
	ctx := context.Background()
	clk := clocktesting.NewFakeClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clk, BootTime: time.Minute})
	cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Times: 1, Kind: drivertest.LoseResponse})

	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "worker-x7k2p"}}
	class, secret := cloud.MachineClass("shoot", "small"), cloud.Secret("shoot", "small")
	create := &driver.CreateMachineRequest{Machine: machine, MachineClass: class, Secret: secret}

	_, err := cloud.CreateMachine(ctx, create)
	fmt.Println("first answer:", codes.Of(err))
	resp, _ := cloud.CreateMachine(ctx, create)
	fmt.Println("second answer:", resp.ProviderID)
	fmt.Print(cloud.Snapshot())

	clk.SetTime(cloud.NextChange())
	_, _ = cloud.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: machine, MachineClass: class, Secret: secret})
	fmt.Println("left:", cloud.Snapshot())
	fmt.Print(cloud.History())
	// Output:
	// first answer: Unavailable
	// second answer: simulated:///shoot/worker-x7k2p/1
	// vm simulated:///shoot/worker-x7k2p/1 of machine worker-x7k2p, Pending
	// disk disk:///shoot/worker-x7k2p/1 of machine worker-x7k2p
	// nic nic:///shoot/worker-x7k2p/1 of machine worker-x7k2p
	// left: nothing
	//
	// 12:00:00 VMCreated: vm simulated:///shoot/worker-x7k2p/1 of machine worker-x7k2p, Pending
	// 12:01:00 VMReady: vm simulated:///shoot/worker-x7k2p/1 of machine worker-x7k2p, Running
	// 12:01:00 VMDeletionBegan: vm simulated:///shoot/worker-x7k2p/1 of machine worker-x7k2p, Deleting
	// 12:01:00 VMDeleted: vm simulated:///shoot/worker-x7k2p/1 of machine worker-x7k2p, Gone
}
