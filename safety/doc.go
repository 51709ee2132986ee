// SPDX-License-Identifier: Apache-2.0

// Package safety decides which VMs nobody owns, and which of those may be
// deleted now. It decides which sets create more machines than they were asked for, and
// may create no more: [StepOvershoot]. It decides which Nodes no machine stands for: [StepUnmanaged].
//
// [Step] is a pure function with a small memory; a controller is the loop around
// it:
//
//	vms, err := list(ctx, class)                  // first the cloud, with ListMachines …
//	listing := safety.NewListing(class, vms, err, time.Now())
//	asOf := time.Now()
//	machines, err := allMachines(ctx)             // … then the machines, from the API server
//	in := safety.Observation{
//		Listings:  []safety.Listing{listing},
//		Machines:  safety.View[*v1alpha1.Machine]{Items: machines, AsOf: asOf, Complete: err == nil},
//		Namespace: safety.AllNamespaces,
//	}
//	state, decision = safety.Step(state, in, safety.DefaultPolicy(), time.Now())
//	for _, a := range decision.Actions {
//		switch a := a.(type) {
//		case safety.DeleteVM:
//			// get the machine a.Namespace/a.MachineName; if a.StillValid(machine),
//			// call DeleteMachine with a.Machine()
//		case safety.DeleteSideResource:
//			// the same, with DeleteSideResource of a driver.SideResourceDeleter
//		}
//	}
//	// look again at decision.NextCheck
//
// # What is promised
//
// "Not in my list" is not "does not exist". Nothing is deleted unless all of
// this holds:
//
//  1. The listing of the VMs and that of the machines are complete, not old, and
//     the machines cover the namespace of the class and were read after the VMs. A
//     machine exists before its VM, so a VM without a machine in that order had
//     none when it was listed.
//  2. No machine says that the VM is its own, and none of the VM's name may still
//     be on its way to learn of it. See [Step] for what protects a VM.
//  3. The machines are not suspiciously few. A namespace without any machine looks like a
//     lost API server, and a listing of which a large part is unowned looks like a half
//     restored one. What was deleted within 24 hours counts as listed and unowned, so a
//     list of machines that decays over days costs no more than one that is lost at once:
//     at most [Policy.MaxPercent] of the VMs in 24 hours, or one.
//  4. The listing shows the VMs of the machines of its class. One that lacks many of them
//     is of another account, or half of one.
//  5. The VM was found unowned in two listings at least [Policy.Grace] apart, each compared
//     with its own list of the machines, and in none between them found owned or missing.
//  6. Fewer than [Policy.MaxDeletions] deletions were proposed within
//     [Policy.Period], however often Step is asked.
//
// [StepOvershoot] is a pure function of all deployments, sets and machines, with a memory that
// may be lost. It freezes a set that has too many machines and goes on creating them, and
// unfreezes a set that has fewer. It is the net below package machineset. On lists that are
// not complete nothing is frozen or unfrozen.
//
// A class whose listing fails holds nothing but itself. Everything that is not
// done is a [machinist.Hold] that names what is in the way and when to look again.
//
// # What it does not do
//
// It lists, reads and deletes nothing, and it cannot see what happens between
// its answer and the deletion: [DeleteVM.StillValid] is the last look at the
// machine, and what remains is the time between that look and the call. A machine
// that two lists lack, and that the API server does not show by name either, cannot be
// told from one that was deleted: for its VM only the share of a day is left. VMs
// whose classes are all gone are out of its sight.
package safety
