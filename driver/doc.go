// SPDX-License-Identifier: Apache-2.0

// Package driver says what a provider must implement so that a machine
// controller can make, find and delete VMs on its cloud.
//
// A provider project implements [Driver], proves it with package drivertest,
// and hands it to a controller. The controller puts the bounds and the eyes
// around it:
//
//	d := driver.Observe(
//		driver.WithDeadline(mycloud.New(), driver.Timeouts{CreateMachine: 20 * time.Minute}),
//		observer, clock.RealClock{})
//
//	status, err := d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret})
//	switch codes.Of(err) {
//	case codes.OK:            // adopt what is there: status.ProviderID, status.NodeName
//	case codes.NotFound:      // d.CreateMachine
//	case codes.Uninitialized: // d.InitializeMachine
//	default:                  // wait and ask again; codes.Backoff says how long
//	}
//
// # The contract
//
// What follows holds for all methods; what is special about one stands at the
// method. Each promise is checked by a case of drivertest.
//
// Ownership. A VM, and everything made for it (disks, network interfaces,
// addresses: its side resources), carries two marks: the name of its Machine,
// and the scope of its MachineClass. The scope is whatever the provider
// specification of the class says it is, as a rule a tag that names the
// cluster; names of machines are unique within a scope. The name is the key,
// not the UID: a Machine that was restored from a backup has a new UID and the
// same VM. Something without both marks is not ours and is never shown and
// never touched.
//
// Identity. A provider ID is not empty, belongs to one VM, is the same in every
// answer, and never changes while the VM exists. The same holds for the name of
// the Node that the VM becomes.
//
// Errors. An error carries a code in the sense of codes.Of, as status.Error
// gives it; context errors may be passed on as they are. The code decides what
// the caller does next, the text is for people. No text contains anything out
// of the Secret or the user data.
//
//	NotFound         the VM does not exist. A promise: whoever is not sure says Unavailable.
//	Uninitialized    the VM exists and InitializeMachine has not finished it.
//	Unimplemented    this cloud has no such step, see the methods that allow it.
//	InvalidArgument  request, class or Secret cannot be right: a nil request, Machine,
//	                 MachineClass or (if one is needed) Secret, a class of another provider.
//	OutOfRange       several VMs carry the mark of one machine.
//	ResourceExhausted, Unauthenticated, PermissionDenied, Unavailable, Canceled,
//	DeadlineExceeded: as package codes says.
//
// Responses. Next to a nil error a response is never nil. Next to an error it
// may be nil, and otherwise holds what the method says.
//
// Requests belong to the caller. A driver neither changes them nor keeps a
// reference to them after it returned.
//
// Context. A method ends soon after its context does, with Canceled or
// DeadlineExceeded, and leaves no goroutine. With a context that has ended
// already it does nothing. What was under way in the cloud at that moment may
// have happened or not; both are covered by idempotency.
//
// Pace. A method returns when the cloud has accepted its request. It does not
// wait for a VM to boot or to vanish. It repeats nothing that failed, except
// what costs no more than a moment: the caller owns the pace.
//
// Concurrency. Methods are called by many goroutines at once. Controllers have
// at most one call in flight per machine, but after a crash or a change of
// leader a call of the predecessor may still be working; so methods are
// idempotent under concurrency, too.
//
// Eventual consistency. A cloud may need a while until it shows what was done.
// The caller tolerates that GetMachineStatus and ListMachines do not yet show a
// VM that was just made, and still show one that was just deleted. It does not
// tolerate that CreateMachine makes a second VM in that time: use the cloud's
// idempotency token, or a name or ID that the cloud keeps unique.
//
// # What this package does not do
//
// It talks to no cloud, repeats no call and keeps no state. It has no default
// driver; drivertest has a simulated cloud.
package driver
