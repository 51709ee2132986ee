// SPDX-License-Identifier: Apache-2.0

// Package apptest checks a provider in a real cloud. [Run] runs the controllers with the driver, or with the program, of a provider, and
// carries out nine [Checks] with real machines: creation, deletion, scaling, an update, and a search for orphans.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"time"
//
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
//	)
//
//	func main() {
//		ctx, cloud := context.Background(), drivertest.NewCloud(drivertest.CloudOptions{}) // your driver
//		suite, err := apptest.Open(ctx, apptest.Options{
//			ControlKubeconfig: "/tmp/cluster", Class: cloud.MachineClass("default", "small"), Driver: cloud, Timeout: 10 * time.Minute,
//		})
//		if err != nil {
//			panic(err)
//		}
//		for _, check := range apptest.Checks() {
//			fmt.Println(check.Name, suite.Check(ctx, check))
//		}
//		fmt.Println(suite.Close(ctx))
//	}
//
// In a test, [Run] does the same with a subtest for each check.
//
// # What it needs
//
// A control cluster with a namespace and the Secrets of the class, and a target cluster whose VMs join as Nodes by the user data in
// these Secrets. Both may be one cluster. The kubeconfigs belong to a user who may do everything. At most six
// machines exist at the same time. No other program may add or remove Nodes meanwhile.
//
// # What it leaves
//
// [Suite.Close] deletes the machines and classes, stops the controllers, and restores what Open has changed. What a test that was
// killed has left, the next Open deletes. On Linux the program of a provider ends with the test, also if that
// is killed. The logs stay in Options.LogDir.
package apptest
