// SPDX-License-Identifier: Apache-2.0

// Package drivertest tests that a driver keeps the contract of package driver, and simulates a
// cloud: [Run] is the conformance test of a [Harness], and [NewCloud] returns a [Cloud] that
// fails on demand.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		"github.com/machinist-dev/machinist/driver"
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		cloud := drivertest.NewCloud(drivertest.CloudOptions{})
//		cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Kind: drivertest.LoseResponse, Times: 1})
//		request := &driver.CreateMachineRequest{
//			Machine: &v1alpha1.Machine{}, MachineClass: cloud.MachineClass("shop", "small"), Secret: cloud.Secret("shop", "small"),
//		}
//		request.Machine.Name = "worker-1"
//		_, err := cloud.CreateMachine(context.Background(), request)
//		fmt.Println(err)              // the response is lost
//		fmt.Println(cloud.Snapshot()) // the VM exists
//	}
//
// # Conformance
//
// A provider project calls [Run] in a test, with its driver against a fake of its cloud or the
// cloud itself:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, func(t *testing.T) drivertest.Harness {
//			return drivertest.Harness{New: newDriver, MachineClass: class, Secret: secret}
//		})
//	}
//
// Each promise of the contract is a subtest with its own machines, which it deletes. If a
// fundamental promise is broken, the promises that need it are skipped. The log ends with the
// promises that are broken or not checked, and why.
//
// # Simulation
//
// A [Cloud] is a driver with a simulated cloud: deterministic, on the clock it is given, with
// boot times, delayed visibility, quota, initialization, side resources, and faults by operation,
// machine and probability. [Cloud.History] and [Cloud.Snapshot] show what happened.
package drivertest
