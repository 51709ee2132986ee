// SPDX-License-Identifier: Apache-2.0

// Package machineset decides which machines of a MachineSet are created, which
// are deleted, and which are kept.
//
// [Decide] makes one pass over one set: it is given the set, its machines, and
// what this process has asked for but cannot see yet, and returns actions as
// data, the reasons why other things are not done, and the time at which to ask
// again. A controller is the loop around it:
//
//	set := …   // read live
//	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, cached)
//	…          // write claims.Adopt, after a live read of the set, and claims.Release
//	inFlight[set.UID] = inFlight[set.UID].Observe(cached, synced)
//
//	in := machineset.Observation{
//		Set: set, Machines: claims.Owned, Complete: synced && claims.Settled(),
//		InFlight: inFlight[set.UID], Nodes: views,
//	}
//	d := machineset.Decide(in, policy, now)
//	for _, a := range d.Actions {
//		switch a := a.(type) {
//		case machineset.AddFinalizer:
//			…   // patch the set with a.Edit.Patch()
//		case machineset.RemoveFinalizer:
//			…   // the same
//		case machineset.Sync:
//			…   // update the machine to a.Apply(machine)
//		case machineset.Look:
//			…   // read the machine live; inFlight = inFlight.Looked(a.Name, live, now)
//		case machineset.Delete:
//			…   // inFlight = inFlight.Deleting(a.Name, a.UID, now); delete with the UID as precondition
//		case machineset.Create:
//			…   // for each batch of Batches(a.Count), for each name:
//			    // inFlight = inFlight.Creating(name, now); create NewMachine(set, name)
//			    // if the API server refused a call: inFlight = inFlight.Refused(name)
//		default:
//			…   // an error: this loop is older than the package
//		}
//	}
//	status := machineset.Status(in, failure, now)
//	if machineset.StatusChanged(set.Status, status) {
//		…   // write it
//	}
//	…       // ask again at d.NextCheck
//
// By its own action a set never has more machines than it wants, however far its
// cache lags behind, whichever calls fail, and whatever answers are lost; see
// [InFlight]. A scale-down by k deletes k machines, those that an autoscaler named
// first, beside those that have failed and are replaced. On a list that is not
// known to be whole, nothing is created and nothing deleted.
//
// The package does not choose names, back off, balance zones or freeze sets. How
// one set replaces another is
// decided in package deployment, and what happens to one machine in package
// machine.
package machineset
