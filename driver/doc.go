// SPDX-License-Identifier: Apache-2.0

// Package driver is the interface that a machine provider implements: [Driver] creates, finds
// and deletes VMs. [WithDeadline] bounds its calls, and [Observe] reports them. Package
// drivertest tests an implementation and has a simulated one.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		"github.com/machinist-dev/machinist/codes"
//		"github.com/machinist-dev/machinist/driver"
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		cloud := drivertest.NewCloud(drivertest.CloudOptions{}) // use the driver of your provider
//		d := driver.WithDeadline(cloud, driver.Timeouts{})
//		machine := &v1alpha1.Machine{}
//		machine.Name = "worker-1"
//		_, err := d.GetMachineStatus(context.Background(), &driver.GetMachineStatusRequest{
//			Machine: machine, MachineClass: cloud.MachineClass("shop", "small"), Secret: cloud.Secret("shop", "small"),
//		})
//		fmt.Println(codes.Of(err)) // OK: the VM exists; NotFound: create it
//	}
//
// # The contract
//
// The methods have more. Package drivertest has a test for each promise.
//
// Ownership: a VM and its side resources (disks, network interfaces, addresses) carry the name of
// the Machine and the scope of the MachineClass, usually a tag that names the cluster. The scope
// is in the provider specification of the class. A driver shows and changes nothing without both.
// The UID of a Machine is not used: a restored Machine has another UID and the same VM.
//
// Identity: a provider ID is not empty, belongs to one VM and does not change while the VM
// exists. The same holds for the name of its Node.
//
// Errors have a code of package codes. Context errors may be returned as they are. No text has
// content of the Secret or of the user data.
//
//	NotFound         the VM does not exist; if that is not certain, return Unavailable
//	Uninitialized    the VM exists, and InitializeMachine has not succeeded
//	Unimplemented    the cloud does not have this operation
//	InvalidArgument  the request, the class or the Secret is invalid or missing
//	OutOfRange       several VMs carry the name of the machine
//
// A response is not nil without an error; an empty one is enough for DeleteMachine. Neither a
// response nor an error is a failed call: see [Answer]. A driver neither changes nor keeps requests.
//
// Context: a method returns soon after its context ends and leaves no goroutine. It does nothing if
// the context has ended before. It does not wait until a VM has booted or is deleted, and it does
// not retry for longer than a moment.
//
// Concurrency: many goroutines call the idempotent methods. A call of a crashed process or a former
// leader may still be in progress.
//
// Eventual consistency: GetMachineStatus and ListMachines may lag behind the cloud. CreateMachine
// must not create a second VM in that time: use an idempotency token or a unique name of the cloud.
package driver
