// SPDX-License-Identifier: Apache-2.0

package drivertest_test

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

// The response of the first CreateMachine is lost. The second call returns the same VM.
func ExampleCloud() {
	ctx := context.Background()
	clk := clocktesting.NewFakeClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clk, BootTime: time.Minute})
	cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Times: 1, Kind: drivertest.LoseResponse})

	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	class, secret := cloud.MachineClass("shop", "small"), cloud.Secret("shop", "small")
	create := &driver.CreateMachineRequest{Machine: machine, MachineClass: class, Secret: secret}

	_, err := cloud.CreateMachine(ctx, create)
	fmt.Println("first call:", codes.Of(err))
	resp, _ := cloud.CreateMachine(ctx, create)
	fmt.Println("second call:", resp.ProviderID)
	fmt.Print(cloud.Snapshot())

	clk.SetTime(cloud.NextChange())
	_, _ = cloud.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: machine, MachineClass: class, Secret: secret})
	fmt.Println("left:", cloud.Snapshot())
	fmt.Print(cloud.History())
	// Output:
	// first call: Unavailable
	// second call: simulated:///shop/web-1/1
	// vm simulated:///shop/web-1/1 of machine web-1, Pending
	// disk disk:///shop/web-1/1 of machine web-1
	// nic nic:///shop/web-1/1 of machine web-1
	// left: nothing
	//
	// 12:00:00 VMCreated: vm simulated:///shop/web-1/1 of machine web-1, Pending
	// 12:01:00 VMReady: vm simulated:///shop/web-1/1 of machine web-1, Running
	// 12:01:00 VMDeletionBegan: vm simulated:///shop/web-1/1 of machine web-1, Deleting
	// 12:01:00 VMDeleted: vm simulated:///shop/web-1/1 of machine web-1, Gone
}
