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
//	claims := machineset.Claim(machineset.OwnerSet(set), machineset.ClaimSelector(set), cached)
//	…          // write claims.Adopt, after a live read of the set, and claims.Release
//	expected[set.UID] = expected[set.UID].Observe(cachedMachine, synced)
//
//	in := machineset.Observation{
//		Set: set, Machines: claims.Owned, Complete: synced && claims.Settled(),
//		Released: claims.Released, Expectations: expected[set.UID], NeverJoined: neverJoined[set.UID], Nodes: views,
//	}
//	d := machineset.Decide(in, policy, now)
//	for _, a := range d.Actions {
//		switch a := a.(type) {
//		case machineset.SetFinalizers:
//			…   // patch the set with a.Patch()
//		case machineset.Sync:
//			…   // update the machine to a.Apply(machine)
//		case machineset.Look:
//			…   // read the machine live; expected = expected.Looked(machine.KindMachine, a.Name, live, now)
//		case machineset.Delete:
//			…   // expected = expected.Deleting(machine.KindMachine, a.Name, a.UID, now); neverJoined = neverJoined.Deleting(a, now)
//			    // delete with the UID as precondition
//		case machineset.Create:
//			…   // for each batch of Batches(a.Count), m := NewMachine(set, Suffix(rand.Float64)):
//			    // expected = expected.Creating(machine.KindMachine, m.Name, now); create m
//			    // after an error: expected, look = expected.Failed(machine.KindMachine, m.Name, err)
//		default:
//			…   // an error: this loop is older than the package
//		}
//	}
//	if status, changed := machineset.Status(in, failure, now); changed {
//		…   // write it
//	}
//	…       // ask again at d.NextCheck
//
// By its own action a set never has more machines than it wants, those on their way
// out not counted (they are replaced without waiting for their end), however far its
// cache lags behind, whichever calls fail, and whatever answers are lost; see
// [machine.Expectations]. If something takes the labels off its machines, so that they have to
// be released and replaced, it stops after 3. A scale-down by
// k deletes k machines, beside those that have failed and are replaced: those that
// an autoscaler named, then those that the set itself names ([NameVictims]), then
// the first in an [Order]. On a list that is not known to be whole, nothing is
// created and nothing deleted.
//
// [Count] is the one place where machines are counted, [Choose] the one where
// those that go are chosen. Package deployment plans with the same functions, and
// so knows what its sets are going to do.
//
// The package does not choose names, back off, balance zones or freeze sets. How
// one set replaces another is decided in package deployment, and what happens to
// one machine in package machine.
package machineset
